"""Clients that others have written, and one generated from the description, understand the service.

They run in an environment of their own, `make clients`, as some need other versions of packages.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving import Process

from tests.needs import lacking
from tests.serve.conftest import store  # noqa: F401

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def running(store: Path) -> Iterator[Process]:  # noqa: F811
    with Process("small", store) as process:
        yield process.ready()


@pytest.fixture(scope="module")
def programs() -> Path:
    """Return the folder with the programs of the clients' environment."""
    found = Path(sys.prefix) / "clients" / "bin"
    if not (found / "openapi-python-client").exists():
        lacking("no clients of others here: make clients installs them")
    return found


def ask(programs: Path, script: str, *arguments: str | Path) -> Any:
    """Run a script of this folder with the clients' Python, and read what it prints."""
    command = [str(one) for one in (programs / "python", HERE / script, *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def trees(process: Process, *sentences: str) -> list[str]:
    found = process.ask("POST", "/v1/parse", {"sentences": sentences}).json()["sentences"]
    return [one["parses"][0]["tree"] for one in found]


def test_tritons_client_reads_metadata_and_trees(programs: Path, running: Process) -> None:
    told = ask(programs, "try_triton.py", f"127.0.0.1:{running.port}")
    assert [told[one] for one in ("live", "ready", "model", "version")] == [True] * 4
    assert told["none"] is False
    assert told["server"] == "lpcfg"
    assert [one["name"] for one in told["inputs"]] == ["text"]
    expected = trees(running, "The dog saw a cat.", "Élan.")
    assert told["trees False"] == told["trees True"] == expected
    assert "'none'" in told["error"]


def test_kserves_client_reads_trees(programs: Path, running: Process) -> None:
    told = ask(programs, "try_kserve.py", f"http://127.0.0.1:{running.port}")
    assert [told[one] for one in ("live", "ready", "model")] == [True] * 3
    assert told["trees"] == trees(running, "The dog saw a cat.")


def test_a_generated_client_parses_a_sentence(
    programs: Path, running: Process, tmp_path: Path
) -> None:
    address = f"http://127.0.0.1:{running.port}"
    command = [str(programs / "openapi-python-client"), "generate", "--meta", "none"]
    command += ["--url", f"{address}/openapi.json", "--output-path", str(tmp_path / "lpcfg_client")]
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    made = subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    passed_by = {  # it knows no JSON lines
        "POST /v1/batch",
        "POST /v1/dependencies/batch",
        "POST /v1/jobs",
        "GET /v1/jobs/{id}/answers",
    }
    warned = {line.split("parsing ")[1] for line in made.stdout.splitlines() if "parsing " in line}
    assert {one.partition(" within")[0] for one in warned} <= passed_by
    told = ask(programs, "try_generated.py", address, tmp_path)
    assert told == {"tree": trees(running, "The dog saw a cat.")[0], "problem": 422}
