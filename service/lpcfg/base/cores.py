"""How many cores this process may use."""

import math
import os
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")


def cores() -> int:
    """Count the cores this process may use: in a container, often fewer than the machine has.

    A container's CPU limit is a quota of time, which affinity does not show: at 2 CPUs on a machine
    with 64, 64 threads would use up a tenth of a second within milliseconds and then all stand.
    """
    counted = getattr(os, "process_cpu_count", None)  # Python 3.13 has it, with -X cpu_count
    if counted is not None:
        allowed = counted() or 1
    else:
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return max(1, math.ceil(min(allowed, _quota())))


def _quota() -> float:
    """Return the CPUs that control groups allow, this process's and those above it."""
    with suppress(OSError, ValueError):
        # version 2: one line, 0::/path
        own = _OWN_GROUP.read_text(encoding="utf-8").strip().rpartition(":")[2].strip("/")
        groups = [_GROUPS / own, *(_GROUPS / own).parents] if own else [_GROUPS]
        quotas = [_quota_of(group) for group in groups if group.is_relative_to(_GROUPS)]
        return min(quotas)
    return math.inf


def _quota_of(group: Path) -> float:
    """Read a quota as version 2 of control groups writes it, or else version 1."""
    with suppress(OSError, ValueError):
        quota, period = (group / "cpu.max").read_text(encoding="utf-8").split()
        return math.inf if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError):
        quota, period = (
            (group / "cpu" / f"cpu.cfs_{name}_us").read_text(encoding="utf-8").strip()
            for name in ("quota", "period")
        )
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    return math.inf
