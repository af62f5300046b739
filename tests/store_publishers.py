"""Processes that publish and are killed. A program of its own: forks of a small process are cheap.

`python -m tests.store_publishers kills|calls|race STORE` prints a JSON object or fails.
"""

import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from types import FrameType, ModuleType

import numpy as np

from lpcfg.store import versions as store
from lpcfg.store.files import Bundle

NAME = "m"
WARM_UP = 20
KILLS = 1_000
LONGEST_WAIT = 0.02  # seconds; a slow disk must not make the thousand kills take minutes
PUBLISHERS, EACH = 3, 25


def publish(folder: Path, serial: int) -> None:
    values = np.arange(64, dtype=np.float64) + serial
    card = f"# publish {serial}\n"
    bundle = Bundle({"values": values}, {"serial": serial}, {"serial": serial}, card)
    store.publish(folder, NAME, bundle)


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def serials(folder: Path) -> dict[int, int]:
    """List every version and the serial it holds; loading verifies all of its files."""
    found = {}
    for listed in store.list_models(folder):
        version = listed.reference.version
        stored = store.load(f"{NAME}@{version}", folder)
        serial = stored.grammar["serial"]
        assert isinstance(serial, int)
        assert stored.card == f"# publish {serial}\n"
        assert np.array_equal(stored.tensors["values"], np.arange(64) + serial)
        found[version] = serial
    return found


def newest(folder: Path) -> tuple[int, object]:
    reference = store.resolve(NAME, folder)
    return reference.version, store.load(NAME, folder).grammar["serial"]


def unfinished(folder: Path) -> int:
    return len(list((folder / NAME).glob(".publish-*")))


def kills(folder: Path) -> dict[str, int]:
    """Check that each kill leaves the newest version as it was, or the one being published."""
    random = Random(20140612)
    took = []
    for serial in range(-WARM_UP, 0):
        start = time.perf_counter()
        os.waitpid(fork(lambda serial=serial: publish(folder, serial)), 0)
        took.append(time.perf_counter() - start)
    span = min(1.2 * median(took), LONGEST_WAIT)
    seen = {"old": 0, "new": 0, "torn_folders": 0}
    before = newest(folder)
    for serial in range(KILLS):
        child = fork(lambda serial=serial: publish(folder, serial))
        time.sleep(random.uniform(0, span))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        after = newest(folder)
        if after == before:
            seen["old"] += 1
        else:
            assert after == (before[0] + 1, serial), (before, after)
            seen["new"] += 1
        seen["torn_folders"] += unfinished(folder)
        before = after
    assert len(serials(folder)) == WARM_UP + seen["new"]
    publish(folder, KILLS)
    return seen | {"left": unfinished(folder)}


def die_at(call: int) -> Callable[[FrameType, str, object], None]:
    """Return a profiler that kills its process right before its n-th call into the system."""
    calls = count(1)

    def profiler(_frame: FrameType, event: str, called: object) -> None:
        if event != "c_call":
            return
        owner = getattr(called, "__self__", None)
        system = isinstance(owner, ModuleType) and owner.__name__ in ("posix", "fcntl")
        if (system or isinstance(owner, io.BufferedWriter)) and next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)

    return profiler


def calls(folder: Path) -> dict[str, int]:
    """Kill a publisher before its first system call, before the second, … until one survives."""
    publish(folder, 0)
    seen = {"old": 0, "new": 0}
    for call in count(1):
        before = newest(folder)

        def work(call: int = call) -> None:
            sys.setprofile(die_at(call))
            publish(folder, call)

        _, status = os.waitpid(fork(work), 0)
        after = newest(folder)
        assert after in (before, (before[0] + 1, call)), (before, after)
        if not os.WIFSIGNALED(status):
            assert status == 0
            return seen | {"left": unfinished(folder)}
        seen["old" if after == before else "new"] += 1
    raise AssertionError("counting never ends")


def race(folder: Path) -> dict[str, int]:
    """Start publishers at once and kill others among them: all numbers differ, nothing is lost."""

    def work(publisher: int) -> None:
        for serial in range(EACH):
            publish(folder, publisher * EACH + serial)

    random = Random(20130609)
    workers = [fork(lambda worker=worker: work(worker)) for worker in range(PUBLISHERS)]
    killed = 0
    while workers:
        victim = fork(lambda: publish(folder, -1))
        time.sleep(random.uniform(0, 0.005))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        killed += 1
        for worker in list(workers):
            done, status = os.waitpid(worker, os.WNOHANG)
            if done:
                assert status == 0, "a publisher failed"
                workers.remove(worker)
    publish(folder, PUBLISHERS * EACH)
    lasting = sorted(serial for serial in serials(folder).values() if serial >= 0)
    assert lasting == list(range(PUBLISHERS * EACH + 1)), lasting
    return {"killed": killed, "left": unfinished(folder)}


if __name__ == "__main__":
    mode, target = sys.argv[1:]
    print(json.dumps({"kills": kills, "calls": calls, "race": race}[mode](Path(target))))
