"""The queues of work, and the threads that do it."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, Stopped
from lpcfg.serve.scheduling.admission import Admission, Priority, Ticket
from lpcfg.serve.scheduling.work import FaultError, Queues, Task, Work, Workers


@dataclass
class Waiting:
    name: str
    ticket: Ticket


def waiting(name: str, priority: Priority, client: str = "a") -> Any:
    return Waiting(name, Ticket(priority, client, 0.0))


def test_clients_of_a_priority_come_in_turn() -> None:
    queues = Queues()
    for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
        queues.add(waiting(name, Priority.SINGLE, name[0]))
    order = [queues.pop(Priority.SINGLE).name for _ in range(6)]
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert queues.next() is None


def test_priorities_share_the_time_by_their_weights() -> None:
    queues, spent = Queues(), Counter[Priority]()
    for priority in Priority:
        queues.add(waiting("", priority))
    for _ in range(700):
        priority = queues.next()
        assert priority is not None
        spent[priority] += 1
        queues.charge(priority, 0.01)
    assert spent[Priority.SINGLE] == pytest.approx(400, abs=2)
    assert spent[Priority.LARGER] == pytest.approx(200, abs=2)
    assert spent[Priority.BATCH] == pytest.approx(100, abs=2)


def test_a_priority_that_was_idle_comes_next_but_saves_up_nothing() -> None:
    queues = Queues()
    queues.add(waiting("long", Priority.BATCH))
    for _ in range(100):
        queues.charge(Priority.BATCH, 0.01)
    queues.add(waiting("short", Priority.SINGLE))
    assert queues.next() is Priority.SINGLE
    queues.charge(Priority.SINGLE, 0.2)
    assert queues.next() is Priority.BATCH


def test_the_cost_of_tasks_replaces_the_estimate_of_their_request() -> None:
    async def work() -> float:
        admission, entered, go_on = Admission(1, 8, 1.0), threading.Event(), threading.Event()

        def wait() -> bytes:
            entered.set()
            go_on.wait(10)
            return b""

        workers = Workers(1, admission)
        ticket = admission.enter(Priority.SINGLE, "a", 5.0)
        work = workers.submit(lambda: [Task(wait, 0.25)], ticket, Stop())
        try:
            await asyncio.to_thread(entered.wait, 10)
            await asyncio.sleep(0)  # what the thread told the loop before comes first
            return admission.waiting_seconds
        finally:
            go_on.set()
            await work.done
            workers.close()

    assert asyncio.run(work()) == pytest.approx(0.25)


def ticket(admission: Admission, estimate: float = 0.0) -> Ticket:
    return admission.enter(Priority.LARGER, "a", estimate)


def run(threads: int, *lines: list[Task[bytes]]) -> list[list[bytes] | BaseException]:
    """Submit lines of tasks at once, and return their results."""

    async def work() -> list[list[bytes] | BaseException]:
        admission = Admission(threads, 8, 1.0)
        workers = Workers(threads, admission)
        submitted: list[Work[bytes]] = [
            workers.submit(
                lambda tasks=tasks: tasks, admission.enter(Priority.LARGER, "a", 0.0), Stop()
            )
            for tasks in lines
        ]
        try:
            return await asyncio.gather(*(one.done for one in submitted), return_exceptions=True)
        finally:
            workers.close()

    return asyncio.run(asyncio.wait_for(work(), 30))


def told(text: str) -> Task[bytes]:
    return Task(text.encode, 0.0)


def raising(error: Exception) -> Task[bytes]:
    def raise_it() -> bytes:
        raise error

    return Task(raise_it, 0.0)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_line_gets_its_own_results_in_order(threads: int) -> None:
    lines = [[told(f"{work}.{task}") for task in range(work)] for work in range(40)]
    expected = [[f"{work}.{task}".encode() for task in range(work)] for work in range(40)]
    assert run(threads, *lines) == expected


def test_a_line_with_an_error_fails_alone() -> None:
    first, second, third = run(
        1, [told("a")], [told("b"), raising(InputError("no")), told("c")], [told("d")]
    )
    assert (first, third) == ([b"a"], [b"d"])
    assert isinstance(second, InputError)


def test_an_unexpected_fault_fails_only_its_own_request() -> None:
    lines = [[told("a")], [raising(ZeroDivisionError())], [told("b"), told("c")]]
    first, second, third = run(1, *lines)
    assert (first, third) == ([b"a"], [b"b", b"c"])
    assert isinstance(second, FaultError)


def test_an_unexpected_fault_while_preparing_fails_the_request() -> None:
    async def work() -> BaseException | None:
        admission = Admission(1, 8, 1.0)
        workers = Workers(1, admission)

        def broken() -> list[Task[bytes]]:
            raise ZeroDivisionError

        try:
            for _ in range(3):  # each fault ends a thread's loop, which is started anew
                work = workers.submit(broken, admission.enter(Priority.LARGER, "a", 0.5), Stop())
                await asyncio.wait([work.done])
            return work.done.exception()
        finally:
            workers.close()

    assert isinstance(asyncio.run(work()), FaultError)


def messages_of(
    number: int, cost: float, monkeypatch: pytest.MonkeyPatch, *, before: int = 0
) -> int:
    """Run a work of tasks that cost so much each, and count the messages to the event loop.

    The first task waits until so many messages have come.
    """

    async def work() -> int:
        loop, messages, go_on = asyncio.get_running_loop(), list[Any](), threading.Event()
        tell = loop.call_soon_threadsafe

        def counted(call: Callable[..., None], *given: Any) -> None:
            messages.append(call)
            call(*given)

        monkeypatch.setattr(loop, "call_soon_threadsafe", partial(tell, counted))
        admission = Admission(1, 8, 1.0)
        monkeypatch.setattr(admission, "learn", lambda *_: None)  # batches stay of one size
        workers = Workers(1, admission)
        ticket = admission.enter(Priority.SINGLE, "a", cost)
        first = Task(lambda: b"" if go_on.wait(10) else b"late", cost)
        tasks = [first, *[Task(lambda: b"", cost)] * (number - 1)]
        try:
            work = workers.submit(lambda: tasks, ticket, Stop())
            while len(messages) < before:
                await asyncio.sleep(0)
            go_on.set()
            assert await work.done == [b""] * number
            return len(messages)
        finally:
            go_on.set()
            workers.close()

    return asyncio.run(asyncio.wait_for(work(), 30))


def test_only_a_line_beyond_a_batch_is_prepared_before_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert messages_of(1, 0.002, monkeypatch) == 1
    assert messages_of(1, 0.02, monkeypatch, before=1) == 2


def test_the_event_loop_is_told_of_five_turns_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert messages_of(5, 0.02, monkeypatch, before=1) == 2
    # that of the preparation, one for each five turns, one for the end
    assert messages_of(43, 0.02, monkeypatch) <= 1 + 43 // 5 + 1


def test_a_long_line_does_not_keep_a_short_one_waiting() -> None:
    finished: list[str] = []

    def noted(name: str) -> Task[bytes]:
        def note() -> bytes:
            finished.append(name)
            return b""

        return Task(note, 0.02)  # more than a batch holds: a turn each

    run(1, [noted("long")] * 20, [noted("short")])
    assert finished.index("short") <= 2


def test_a_single_sentence_waits_for_no_long_one_on_every_thread() -> None:
    async def work() -> list[bytes]:
        admission, go_on = Admission(2, 8, 1.0), threading.Event()
        workers = Workers(2, admission)

        def long() -> bytes:
            go_on.wait(10)
            return b"long"

        def submitted(priority: Priority, task: Task[bytes]) -> Work[bytes]:
            return workers.submit(lambda: [task], admission.enter(priority, "a", 0.0), Stop())

        try:
            longs = [submitted(Priority.BATCH, Task(long, 1.0)) for _ in range(4)]
            await asyncio.sleep(0.05)
            single = await submitted(Priority.SINGLE, told("single")).done
            assert not any(one.done.done() for one in longs)
            go_on.set()
            await asyncio.gather(*(one.done for one in longs))
            return single
        finally:
            go_on.set()
            workers.close()

    assert asyncio.run(asyncio.wait_for(work(), 30)) == [b"single"]


def test_cancelled_work_is_dropped() -> None:
    async def work() -> tuple[int, BaseException | None]:
        admission = Admission(1, 8, 1.0)
        workers = Workers(1, admission)
        entered, go_on, ran = threading.Event(), threading.Event(), []

        def first() -> bytes:
            entered.set()
            go_on.wait(10)
            return b""

        stop = Stop()
        rest = [Task(lambda: ran.append(1) or b"", 0.0) for _ in range(100)]
        ticket = admission.enter(Priority.LARGER, "a", 0.0)
        work = workers.submit(lambda: [Task(first, 1.0), *rest], ticket, stop)
        try:
            await asyncio.to_thread(entered.wait, 10)
            stop.cancel()
            go_on.set()
            await asyncio.wait([work.done])
            while admission.requests:
                await asyncio.sleep(0.01)
            return len(ran), work.done.exception()
        finally:
            workers.close()

    ran, error = asyncio.run(work())
    assert ran == 0
    assert isinstance(error, Stopped)
