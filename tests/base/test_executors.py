"""Executors: all work is done once, whoever does it, in one order, and nobody is left behind."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from operator import add

import numpy as np
import pytest

from lpcfg.base.errors import InputError, LimitError, TrainingError, TreebankError, WorkerError
from lpcfg.base.executors import ENOUGH, Executor, Inline, Pool, Processes, Threads, reduce_tree


def paired(one: str, other: str) -> str:
    return f"({one}{other})"


@pytest.mark.parametrize(
    ("leaves", "tree"),
    [
        ("a", "a"),
        ("ab", "(ab)"),
        ("abc", "((ab)c)"),
        ("abcdef", "(((ab)(cd))(ef))"),
        ("abcdefg", "(((ab)(cd))((ef)g))"),
    ],
)
def test_results_are_merged_in_one_binary_tree(leaves: str, tree: str) -> None:
    assert reduce_tree(leaves, paired) == tree


def test_few_results_wait_to_be_merged() -> None:
    alive: set[int] = set()
    most = 0

    def made() -> Iterator[int]:
        nonlocal most
        for k in range(100):
            alive.add(k)
            most = max(most, len(alive))
            yield k

    def merge(one: int, other: int) -> int:
        alive.discard(one)
        return other

    reduce_tree(made(), merge)
    assert most <= 8  # one for each of the seven levels, and the newest


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_order_of_arrival_does_not_change_a_bit(workers: int) -> None:
    numbers = np.random.default_rng(0).normal(size=(40, 3)) * 10.0 ** np.arange(40)[:, None]
    chance = random.Random(workers)

    def slowly(row: int) -> list[np.ndarray]:
        time.sleep(chance.random() / 200)
        return [numbers[row], -numbers[row]]

    with Threads(workers) as executor:
        totals = executor.gather(executor.reduce(slowly, range(40), np.add, 2))
    expected = reduce_tree(iter(numbers), np.add)
    assert totals[0].tobytes() == expected.tobytes()
    assert totals[1].tobytes() == (-expected).tobytes()


def test_one_part_more_is_taken_than_there_are_workers() -> None:
    taken = 0

    def parts() -> Iterator[int]:
        nonlocal taken
        while taken < 20:
            taken += 1
            yield taken

    with Threads(3) as executor:
        ahead = executor.map(lambda part: taken - part, parts())
    assert len(ahead) == 20
    assert max(ahead) <= 4


def test_workers_go_on_while_the_first_part_takes_long() -> None:
    third = threading.Event()

    def work(part: int) -> bool:
        if part == 2:
            third.set()
        return part != 0 or third.wait(10)

    with Threads(2) as executor:
        assert all(executor.map(work, range(3)))


def test_an_error_of_a_part_is_raised() -> None:
    def fail(part: int) -> list[int]:
        raise ValueError(f"part {part}")

    with Threads(2) as executor, pytest.raises(ValueError, match="part 0"):
        executor.reduce(fail, range(5), max, 1)


# Processes ----------------------------------------------------------------------------------------

_asked: list[int] = []


def started(workers: int) -> Pool:
    """Start a pool, and wait until its first process is ready to work."""
    pool = Pool(workers)
    pool.start(ENOUGH, "json")
    assert pool.submit(pow, 2, 5).result() == 32
    return pool


def _squared(number: int) -> tuple[int, bool]:
    """Square a number slowly, and say whether another process did it."""
    time.sleep(0.02)
    elsewhere = multiprocessing.parent_process() is not None
    if not elsewhere:
        _asked.append(number)
    return number**2, elsewhere


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_item_is_done_once_and_in_its_place(workers: int) -> None:
    with started(workers) as pool:
        _asked.clear()
        done = pool.map(_squared, range(40))
    assert [result for result, _ in done] == [k**2 for k in range(40)]
    assert sorted(_asked) == [k for k, (_, elsewhere) in enumerate(done) if not elsewhere]
    assert any(elsewhere for _, elsewhere in done) is (workers > 1)


def test_little_text_starts_no_process() -> None:
    with Pool(2) as pool:
        pool.start(ENOUGH - 1, "json")
        assert not any(elsewhere for _, elsewhere in pool.map(_squared, range(4)))
        assert pool.submit(os.getpid).result() == os.getpid()
        assert pool.submit(threading.get_ident).result() != threading.get_ident()
        pool.start(ENOUGH, "json")
        assert pool.submit(os.getpid).result() != os.getpid()


def test_one_worker_makes_a_call_at_once() -> None:
    with Pool(1) as pool:
        pool.start(ENOUGH, "json")
        assert pool.submit(threading.get_ident).result() == threading.get_ident()


def test_fewer_than_one_worker_are_refused() -> None:
    with pytest.raises(TrainingError, match="expected at least one worker, got 0"):
        Pool(0)


def _kill_others(_: int) -> None:
    time.sleep(0.02)
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_an_error_not_a_wait() -> None:
    told = r"got one that was killed.*use fewer workers"
    with started(2) as pool:
        with pytest.raises(WorkerError, match=told):
            pool.map(_kill_others, range(8))
        assert pool.submit(pow, 2, 5).result() == 32, "another process takes its place"


def test_processes_are_started_for_calls_that_need_them() -> None:
    with Processes(4) as executor:
        pids = [executor.submit(os.getpid).result() for _ in range(8)]
        assert len(set(pids)) <= 2  # the second call may come before the first process waits
        assert {executor.submit(os.getpid).result() for _ in range(8)} <= {*pids}


def test_shutdown_cancels_what_waits_and_ends_what_runs() -> None:
    executor = Processes(1)
    pid = executor.submit(os.getpid).result()
    running, waiting = executor.submit(time.sleep, 600), executor.submit(time.sleep, 600)
    while not running.running():
        time.sleep(0.01)
    executor.shutdown()
    assert isinstance(running.exception(10), WorkerError)
    assert waiting.cancelled()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        InputError("expected this", pointer="/a"),
        LimitError("too long", limit=3, value=4, pointer="/b"),
        TreebankError("expected brackets", source="a.mrg", line=3, column=7),
        ValueError("any other"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_in_a_process_is_raised_as_it_was(error: Exception) -> None:
    with Processes(1) as executor:
        found = executor.submit(_raise, error).exception()
    assert type(found) is type(error)
    assert str(found) == str(error)
    kept = {name: value for name, value in vars(found).items() if name != "__notes__"}
    assert kept == vars(error)
    assert "in _raise" in found.__notes__[0]


def test_results_that_cannot_be_sent_are_an_error() -> None:
    with Processes(1) as executor:
        with pytest.raises(TypeError, match="expected a result that can be sent"):
            executor.submit(threading.Lock).result()
        assert executor.submit(pow, 2, 5).result() == 32


@pytest.mark.parametrize("make", [Inline, partial(Threads, 3), partial(Processes, 2)])
def test_executors_give_the_same_sums_to_the_last_bit(make: Callable[[], Executor]) -> None:
    numbers = [[0.1 * k, 1e-9 / (k + 1)] for k in range(23)]
    with make() as executor:
        found = executor.gather(executor.reduce(list, numbers, add, 2))
    assert found == reduce_tree(numbers, lambda a, b: [a[0] + b[0], a[1] + b[1]])


PARENT = """
import time
from lpcfg.base.executors import Processes

if __name__ == "__main__":
    executor = Processes(2)
    print(*[executor.submit(str, k).result() for k in range(4)], flush=True)
    executor.submit(time.sleep, 600).result()
"""


def test_processes_end_with_the_one_that_started_them() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "0 1 2 3\n"
        parent.kill()
        # Workers inherit the pipe: it ends when the last of them has.
        assert parent.communicate(timeout=30)[0] == ""


IDLE = """
from lpcfg.base.executors import Processes

if __name__ == "__main__":
    executor = Processes(1)
    print(executor.submit(pow, 2, 5).result())
"""


def test_a_program_ends_though_it_forgot_its_processes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IDLE], capture_output=True, check=False, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "32\n", "")


INTERRUPTED = """
import os
import signal
from lpcfg.base.cancel import block_interrupts
from lpcfg.base.executors import Processes

if __name__ == "__main__":
    block_interrupts()
    Processes(1).submit(int).result()
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()), flush=True)
    os._exit(130)
"""


def test_processes_keep_interrupts_held_back_and_end_without_a_message() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "True\n", "")
