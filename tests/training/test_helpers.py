"""Processes beside this one: all work is done once, whoever does it, and nobody is left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.training.helpers import ENOUGH, Helpers

_asked: list[int] = []


def begun(workers: int) -> Helpers:
    """Start helpers, and wait until the first of them is ready to work."""
    helpers = Helpers(workers)
    helpers.begin(ENOUGH)
    with helpers.beside() as beside:
        assert beside.submit(pow, 2, 5).result() == 32
    return helpers


def _squared(number: int) -> tuple[int, bool]:
    """Square a number slowly, and say whether a helper did it."""
    time.sleep(0.02)
    helps = multiprocessing.parent_process() is not None
    if not helps:
        _asked.append(number)
    return number**2, helps


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_item_is_done_once_and_in_its_place(workers: int) -> None:
    with begun(workers) as helpers:
        _asked.clear()
        done = helpers.map(_squared, range(40))
    assert [result for result, _ in done] == [k**2 for k in range(40)]
    assert sorted(_asked) == [k for k, (_, helped) in enumerate(done) if not helped]
    assert any(helped for _, helped in done) is (workers > 1)


def test_little_text_starts_no_process() -> None:
    with Helpers(2) as helpers:
        helpers.begin(ENOUGH - 1)
        assert not any(helped for _, helped in helpers.map(_squared, range(4)))
        with helpers.beside() as beside:
            assert isinstance(beside, ThreadPoolExecutor)
        helpers.begin(ENOUGH)
        with helpers.beside() as beside:
            assert isinstance(beside, ProcessPoolExecutor)


def test_one_worker_does_what_is_handed_in_at_once() -> None:
    with Helpers(1) as helpers:
        helpers.begin(ENOUGH)
        with helpers.beside() as beside:
            assert beside.submit(pow, 2, 5).done()


def test_fewer_than_one_worker_are_refused() -> None:
    with pytest.raises(TrainingError, match="expected at least one worker, got 0"):
        Helpers(0)


def _kill_helpers(_: int) -> None:
    time.sleep(0.02)
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_helper_that_is_killed_is_an_error_not_a_wait() -> None:
    told = r"got one that was killed.*use fewer workers"
    with begun(2) as helpers:
        with pytest.raises(TrainingError, match=told):
            helpers.map(_kill_helpers, range(8))
        with pytest.raises(TrainingError, match=told), helpers.beside() as beside:
            beside.submit(pow, 2, 5).result()


PARENT = """
import time
from lpcfg.base.processes import processes

if __name__ == "__main__":
    with processes(2) as pool:
        list(pool.map(str, range(4)))
        print("at work", flush=True)
        time.sleep(600)
"""


def test_workers_end_with_the_process_that_started_them() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "at work\n"
        parent.kill()
        # Workers inherit the pipe: it ends when the last of them has.
        assert parent.communicate(timeout=30)[0] == ""


INTERRUPTED = """
import os
import signal
from lpcfg.base.cancel import block_interrupts
from lpcfg.base.processes import processes

if __name__ == "__main__":
    block_interrupts()
    pool = processes(1)
    pool.submit(int).result()
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
    os._exit(130)
"""


def test_processes_keep_interrupts_held_back_and_end_without_a_message() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "True\n", "")
