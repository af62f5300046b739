"""Admission, the cache, keys and the workers by themselves."""

import asyncio
import hashlib
import json
import math
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, Request
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, SettingsError, Stopped
from lpcfg.protocol.schemas import TreesRequest
from lpcfg.serve import state
from lpcfg.serve.edge.server import _begin_no_more
from lpcfg.serve.http.bodies import GuardedRoute
from lpcfg.serve.http.keys import Key, Keys
from lpcfg.serve.http.problems import Refused
from lpcfg.serve.routes.tasks import encoded
from lpcfg.serve.scheduling.admission import (
    Admission,
    Lane,
    Place,
    cost,
    cost_of_text,
    cost_of_tokens,
    lane_of,
)
from lpcfg.serve.scheduling.cache import Cache
from lpcfg.serve.scheduling.lanes import Lanes
from lpcfg.serve.scheduling.work import FaultError, Line, Task, Workers
from tests.serve.conftest import Serve

# Admission ----------------------------------------------------------------------------------------


def test_cost_grows_faster_than_length() -> None:
    lengths = (1, 10, 20, 40, 80, 120, 200)
    assert [cost(n) for n in lengths] == sorted(cost(n) for n in lengths)
    for shorter, longer in ((10, 40), (40, 80), (80, 200)):
        assert cost(longer) / longer > cost(shorter) / shorter


def test_a_token_of_a_megabyte_is_no_single_short_sentence() -> None:
    assert lane_of(cost_of_tokens(["the", "cat"])) is Lane.SINGLE
    for one in (cost_of_tokens(["a" * 1_000_000]), cost_of_text("a" * 1_000_000, longest=1)):
        assert lane_of(one) is Lane.LARGER


def test_only_an_idle_service_accepts_work_of_any_size() -> None:
    admission = Admission(threads=2, most_requests=8, most_seconds=1.0)
    places = []
    for _ in range(3):
        admission.check(Lane.LARGER, "a")
        places.append(admission.enter(Lane.LARGER, "a", 1.0))
    with pytest.raises(Refused, match=r"at most 8 requests or 1 seconds of work to wait.* 1\.5"):
        admission.check(Lane.LARGER, "a")
    assert admission.refused == 1
    admission.worked(places[0], 1.0)
    admission.leave(places[0])
    admission.check(Lane.LARGER, "a")


def test_the_number_of_waiting_requests_is_limited() -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0)
    for _ in range(4):
        admission.check(Lane.SINGLE, "a")
        admission.enter(Lane.SINGLE, "a", 1e-6)
    with pytest.raises(Refused, match="expected at most 3 requests") as refused:
        admission.check(Lane.SINGLE, "a")
    assert refused.value.retry_after is not None


def test_a_full_lane_says_nothing_of_the_others() -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0)
    for _ in range(4):
        admission.enter(Lane.LARGER, "a", 100.0)
    with pytest.raises(Refused):
        admission.check(Lane.LARGER, "a")
    admission.check(Lane.SINGLE, "a")


def test_a_client_finds_room_in_a_lane_that_another_fills() -> None:
    admission = Admission(threads=1, most_requests=5, most_seconds=1.0)
    for _ in range(6):
        admission.check(Lane.SINGLE, "a")
        admission.enter(Lane.SINGLE, "a", 1e-6)
    for _ in range(3):  # half of six places
        admission.check(Lane.SINGLE, "b")
        admission.enter(Lane.SINGLE, "b", 1e-6)
    for client in "ab":
        with pytest.raises(Refused):
            admission.check(Lane.SINGLE, client)


@given(st.lists(st.integers(0, 99), max_size=400))
def test_however_many_clients_there_are_a_lane_is_bounded(clients: list[int]) -> None:
    admission = Admission(threads=1, most_requests=5, most_seconds=1.0)
    for client in clients:
        with suppress(Refused):
            admission.check(Lane.SINGLE, str(client))
            admission.enter(Lane.SINGLE, str(client), 1e-6)
    assert admission.requests <= 4 * 6


def test_a_client_may_have_half_of_the_batches() -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0, most_batches=3)
    for client in ("a", "a", "b"):
        admission.check_batch(client)
        admission.enter_batch(client)
    for client in ("a", "b", "c"):
        with pytest.raises(Refused, match="at most 3 batches at once, and 2 of one client"):
            admission.check_batch(client)
    admission.leave_batch("a")
    admission.check_batch("a")


@given(st.lists(st.tuples(st.sampled_from(Lane), st.sampled_from("abc"), st.floats(0, 9))))
def test_nothing_remains_of_work_that_is_done(given_: list[tuple[Lane, str, float]]) -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0)
    places = [admission.enter(*one) for one in given_]
    for number, place in enumerate(places):
        if number % 2:
            admission.worked(place, 2 * place.cost)
        admission.leave(place)
    assert admission.requests == 0
    assert admission.waiting_seconds == 0.0


def test_the_cost_scale_is_learned_from_measured_work() -> None:
    admission = Admission(threads=1, most_requests=8, most_seconds=1.0)
    for _ in range(200):
        admission.learn(0.01, 0.03)
    assert admission.scale == pytest.approx(3.0, rel=0.01)
    admission.enter(Lane.SINGLE, "a", 0.5)
    assert admission.waiting_seconds == pytest.approx(1.5, rel=0.01)


def test_an_estimate_is_corrected_once_the_cost_is_known() -> None:
    admission = Admission(threads=1, most_requests=8, most_seconds=1.0)
    place = admission.enter(Lane.SINGLE, "a", 4.0)
    admission.enter(Lane.LARGER, "b", 1.0)
    admission.correct(place, -3.5)
    assert admission.waiting_seconds == pytest.approx(1.5)


# Lanes --------------------------------------------------------------------------------------------


@dataclass
class Waiting:
    name: str
    place: Place


def waiting(name: str, lane: Lane, client: str = "a") -> Waiting:
    return Waiting(name, Place(lane, client, 0.0))


def test_clients_of_a_lane_come_in_turn() -> None:
    lanes = Lanes[Waiting]()
    for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
        lanes.add(waiting(name, Lane.SINGLE, name[0]))
    order = [lanes.pop(Lane.SINGLE).name for _ in range(6)]
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert lanes.next() is None


def test_lanes_share_the_time_by_their_weights() -> None:
    lanes, spent = Lanes[Waiting](), Counter[Lane]()
    for lane in Lane:
        lanes.add(waiting("", lane))
    for _ in range(700):
        lane = lanes.next()
        assert lane is not None
        spent[lane] += 1
        lanes.charge(lane, 0.01)
    assert spent[Lane.SINGLE] == pytest.approx(400, abs=2)
    assert spent[Lane.LARGER] == pytest.approx(200, abs=2)
    assert spent[Lane.BATCH] == pytest.approx(100, abs=2)


def test_a_lane_that_was_idle_comes_next_but_saves_up_nothing() -> None:
    lanes = Lanes[Waiting]()
    lanes.add(waiting("long", Lane.BATCH))
    for _ in range(100):
        lanes.charge(Lane.BATCH, 0.01)
    lanes.add(waiting("short", Lane.SINGLE))
    assert lanes.next() is Lane.SINGLE
    lanes.charge(Lane.SINGLE, 0.2)
    assert lanes.next() is Lane.BATCH


def test_the_cost_of_tasks_replaces_the_estimate_of_their_request() -> None:
    async def work() -> float:
        admission, entered, go_on = Admission(1, 8, 1.0), threading.Event(), threading.Event()

        def wait() -> bytes:
            entered.set()
            go_on.wait(10)
            return b""

        workers = Workers(1, admission)
        place = admission.enter(Lane.SINGLE, "a", 5.0)
        line = workers.submit(lambda: [Task(wait, 0.25)], place, Stop())
        try:
            await asyncio.to_thread(entered.wait, 10)
            await asyncio.sleep(0)  # what the thread told the loop before comes first
            return admission.waiting_seconds
        finally:
            go_on.set()
            await line.done
            workers.close()

    assert asyncio.run(work()) == pytest.approx(0.25)


# The cache ----------------------------------------------------------------------------------------


def test_the_least_recently_used_answers_go_first() -> None:
    cache = Cache(3 * (1024 + 100))
    for key in "abc":
        cache.put(key, key.encode() * 100)
    assert cache.get("a") == b"a" * 100
    cache.put("d", b"d" * 100)
    assert [cache.get(key) is not None for key in "abcd"] == [True, False, True, True]
    assert (cache.hits, cache.misses) == (4, 1)
    assert cache.bytes == 3 * (1024 + 100)


def test_the_cache_stays_within_its_bytes() -> None:
    cache = Cache(10_000)
    for number in range(1000):
        cache.put(number, b"x" * (number % 3000))
        assert cache.bytes <= 10_000
    cache.put("too large", b"x" * 10_000)
    assert cache.get("too large") is None
    Cache(0).put("nothing", b"")
    assert Cache(0).get("nothing") is None


# Keys ---------------------------------------------------------------------------------------------


def sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def test_keys_are_asked_for_and_have_quotas(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# keys\n\nann {sha256('A')}\nbob {sha256('B')} 9 # a few\n")
    with serve(api_keys_file=path) as client:

        def ask(sentences: int, **headers: str) -> tuple[int, dict[str, object]]:
            body = {"sentences": ["It is."] * sentences}
            answer = client.post("/v1/parse", json=body, headers=headers)
            return answer.status_code, {**answer.json(), **answer.headers}

        assert ask(1)[0] == 401
        status, told = ask(1, authorization="Bearer C")
        assert (status, told["www-authenticate"]) == (401, "Bearer")
        assert "got another: ask the administrator of this service" in str(told["detail"])
        assert ask(200, authorization="Bearer A")[0] == 200
        assert ask(2, authorization="bearer B")[0] == 200  # of 3 tokens each
        assert ask(1, **{"x-api-key": "B"})[0] == 200
        status, told = ask(2, authorization="Bearer B")
        assert (status, told["type"]) == (429, "/docs#problem-quota")
        assert 1 <= int(str(told["retry-after"])) <= 40
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"x-api-key": "A"}).status_code == 200
        assert client.get("/v2/health/ready").status_code == 200
        lines = client.post("/v1/batch", content='"a"\n', headers={"x-api-key": "B"})
        assert lines.json()["problem"]["status"] == 429


def test_a_quota_fills_up_as_time_passes() -> None:
    now = 100.0
    key = Key("ann", b"", 60, lambda: now)
    key.spend(60)
    with pytest.raises(
        Refused, match="at most 60 tokens a minute with the key of ann, got about 10"
    ):
        key.spend(10)
    now += 10.0
    key.spend(10)
    now += 3600.0
    key.spend(200)  # more than a minute's worth: let through once, paid back later
    with pytest.raises(Refused, match="with -140 left") as refused:
        key.spend(1)
    assert refused.value.retry_after == pytest.approx(141.0)


def test_a_quota_is_corrected_by_the_tokens_found(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"ann {sha256('A')} 1000\n")
    text = "It is. " * 20  # 60 tokens in 140 characters, which are charged as 35
    with serve(api_keys_file=path) as client:
        (key,) = client.app.state.service.keys  # type: ignore[attr-defined]
        key.clock = lambda: key.since
        for request in ({"text": text}, {"sentences": ["It is."] * 20}, {"text": " "}):
            before = key.left
            answer = client.post("/v1/parse", json=request, headers={"x-api-key": "A"}).json()
            found = sum(len(one["tokens"]) for one in answer["sentences"])
            assert before - key.left == found
        before = key.left
        client.post("/v1/batch", content='"It is."\n' * 20, headers={"x-api-key": "A"})
        trees = {"trees": ["(S (NP (PRP It)) (VP (VBZ is)))", "(S (NP"]}
        client.post("/v1/tree-probability", json=trees, headers={"x-api-key": "A"})
        assert before - key.left == 62


def test_a_changed_file_of_keys_is_read_again(tmp_path: Path) -> None:
    path, now = tmp_path / "keys", 100.0
    path.write_text(f"ann {sha256('A')} 60\nbob {sha256('B')}\n")
    keys = Keys(path, lambda: now)

    def owner(key: str) -> str | None:
        with suppress(Refused):
            return keys.owner({"x-api-key": key}).name
        return None

    keys.owner({"x-api-key": "A"}).spend(50)
    path.write_text(f"ann {sha256('A')} 60\ncarl {sha256('Carl')}\n")
    assert owner("B") == "bob"  # looked at a moment ago
    now += 2
    assert (owner("B"), owner("Carl")) == (None, "carl")
    assert keys.owner({"x-api-key": "A"}).left == pytest.approx(10, abs=1)
    path.write_text("nonsense\n")
    now += 2
    assert owner("Carl") == "carl"
    path.unlink()
    now += 2
    assert owner("Carl") == "carl"


def test_usage_is_counted_for_each_key(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"ann {sha256('A')}\n")
    with serve(api_keys_file=path) as client:
        request = {"sentences": ["It is.", "It is."]}
        assert client.post("/v1/parse", json=request, headers={"x-api-key": "A"}).status_code == 200
        text = client.get("/metrics").text
    assert 'lpcfg_key_sentences_total{key="ann"} 2.0' in text
    assert 'lpcfg_key_tokens_total{key="ann"} 6.0' in text


@pytest.mark.parametrize(
    "line", ["ann", "ann " + "A" * 64, "ann " + "a" * 63, "ann " + "a" * 64 + " 0", "a b c d"]
)
def test_errors_in_a_file_of_keys_do_not_repeat_the_keys(tmp_path: Path, line: str) -> None:
    path = tmp_path / "keys"
    path.write_text(f"\n{line}\n")
    expected = r"expected `NAME SHA256 \[TOKENS_PER_MINUTE\]` in .*keys:2, got something else"
    with pytest.raises(SettingsError, match=expected) as error:
        Keys(path)
    assert "aaaa" not in str(error.value)
    with pytest.raises(SettingsError, match=re.escape(f"got {tmp_path / 'none'}")):
        Keys(tmp_path / "none")


# The workers --------------------------------------------------------------------------------------


def place(admission: Admission, estimate: float = 0.0) -> Place:
    return admission.enter(Lane.LARGER, "a", estimate)


def run(threads: int, *lines: list[Task[bytes]]) -> list[list[bytes] | BaseException]:
    """Submit lines of tasks at once, and return their results."""

    async def work() -> list[list[bytes] | BaseException]:
        admission = Admission(threads, 8, 1.0)
        workers = Workers(threads, admission)
        submitted: list[Line[bytes]] = [
            workers.submit(
                lambda tasks=tasks: tasks, admission.enter(Lane.LARGER, "a", 0.0), Stop()
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
    lines = [[told(f"{line}.{task}") for task in range(line)] for line in range(40)]
    expected = [[f"{line}.{task}".encode() for task in range(line)] for line in range(40)]
    assert run(threads, *lines) == expected


def test_a_line_with_an_error_fails_alone() -> None:
    first, second, third = run(
        1, [told("a")], [told("b"), raising(InputError("no")), told("c")], [told("d")]
    )
    assert (first, third) == ([b"a"], [b"d"])
    assert isinstance(second, InputError)


def test_an_unexpected_fault_fails_only_its_own_line() -> None:
    lines = [[told("a")], [raising(ZeroDivisionError())], [told("b"), told("c")]]
    first, second, third = run(1, *lines)
    assert (first, third) == ([b"a"], [b"b", b"c"])
    assert isinstance(second, FaultError)


def test_an_unexpected_fault_while_preparing_fails_the_line() -> None:
    async def work() -> BaseException | None:
        admission = Admission(1, 8, 1.0)
        workers = Workers(1, admission)

        def broken() -> list[Task[bytes]]:
            raise ZeroDivisionError

        try:
            for _ in range(3):  # each fault ends a thread's loop, which is started anew
                line = workers.submit(broken, admission.enter(Lane.LARGER, "a", 0.5), Stop())
                await asyncio.wait([line.done])
            return line.done.exception()
        finally:
            workers.close()

    assert isinstance(asyncio.run(work()), FaultError)


def messages_of(
    number: int, cost: float, monkeypatch: pytest.MonkeyPatch, *, before: int = 0
) -> int:
    """Run a line of tasks that cost so much each, and count the messages to the event loop.

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
        place = admission.enter(Lane.SINGLE, "a", cost)
        first = Task(lambda: b"" if go_on.wait(10) else b"late", cost)
        tasks = [first, *[Task(lambda: b"", cost)] * (number - 1)]
        try:
            line = workers.submit(lambda: tasks, place, Stop())
            while len(messages) < before:
                await asyncio.sleep(0)
            go_on.set()
            assert await line.done == [b""] * number
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

        def submitted(lane: Lane, task: Task[bytes]) -> Line[bytes]:
            return workers.submit(lambda: [task], admission.enter(lane, "a", 0.0), Stop())

        try:
            longs = [submitted(Lane.BATCH, Task(long, 1.0)) for _ in range(4)]
            await asyncio.sleep(0.05)
            single = await submitted(Lane.SINGLE, told("single")).done
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
        place = admission.enter(Lane.LARGER, "a", 0.0)
        line = workers.submit(lambda: [Task(first, 1.0), *rest], place, stop)
        try:
            await asyncio.to_thread(entered.wait, 10)
            stop.cancel()
            go_on.set()
            await asyncio.wait([line.done])
            while admission.requests:
                await asyncio.sleep(0.01)
            return len(ran), line.done.exception()
        finally:
            workers.close()

    ran, error = asyncio.run(work())
    assert ran == 0
    assert isinstance(error, Stopped)


# Answers ------------------------------------------------------------------------------------------


@given(
    st.floats(allow_nan=False, allow_infinity=False), st.text(alphabet=st.characters(codec="utf-8"))
)
def test_encoded_values_are_read_back_as_they_were(number: float, text: str) -> None:
    value = {"number": number, "text": [text, "NaN", "-Infinity"], "none": None}
    assert json.loads(encoded(value)) == value


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_lacks_are_not_encoded(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encoded({"number": number})


# Routes -------------------------------------------------------------------------------------------


def test_a_body_comes_with_the_request_and_the_service_alone() -> None:
    async def endpoint(body: TreesRequest, request: Request, name: str) -> None:
        """Take what no guarded endpoint takes."""

    with pytest.raises(TypeError, match="takes body, request, service"):
        APIRouter(route_class=GuardedRoute).post("/a")(endpoint)


# Memory -------------------------------------------------------------------------------------------


def test_free_memory_is_given_back_once_after_work(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = threading.Event()
    times: list[float] = []

    def give_back() -> None:
        times.append(time.monotonic())
        given.set()

    monkeypatch.setattr(state, "_LOOK", 0.01)
    monkeypatch.setattr(state, "give_back", give_back)
    with serve() as client:
        time.sleep(0.1)  # ten looks
        assert not times  # probes are no work
        assert client.post("/v1/parse", json={"text": "The cat sleeps."}).status_code == 200
        assert given.wait(10)
        time.sleep(0.1)
        assert len(times) == 1


def test_no_connection_begins_but_those_made_still_send() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address, timeout=5) as early:
            _begin_no_more(listening)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.3)
            accepted, _ = listening.accept()
            with accepted:
                sent = b"x" * 50_000  # more than the first packet's flags and headers
                early.sendall(sent)
                accepted.settimeout(5)
                received = b""
                while len(received) < len(sent):
                    received += accepted.recv(1 << 16)
                assert received == sent
