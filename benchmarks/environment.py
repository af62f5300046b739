"""The environment that a benchmark's figures depend on."""

import os
import platform
import resource
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

Record = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]


def environment(seed: int) -> Record:
    """Describe what the figures depend on: commit, processor, versions and seed."""
    return {
        "seed": seed,
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "cpu": cpu(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "scipy", "numba")},
        "commit": commit(),
    }


@cache
def commit() -> str | None:
    """Return the checkout's commit when the benchmark began."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return asked.stdout.strip() or None


def cpu() -> str:
    """Return the processor's name."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
