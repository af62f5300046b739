"""The service under load. Where bounds are ratios of times, a test is alone on the machine."""

import asyncio
import hashlib
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks.load import QUEUE, busy, overload, request_of, soak
from benchmarks.serving import Connection, Lost, Process, percentile

from lpcfg.kinds.constituency.answer import analysis_json
from lpcfg.kinds.constituency.model import from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from lpcfg.store.versions import publish, resolve
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train, train_and_publish
from tests.serve.conftest import TREES, made_up

alone = pytest.mark.load
THREADS = len(os.sched_getaffinity(0))
CLIENTS = 3
ADMIN = "an-administrator's-key"


@alone
def test_tenfold_overload_does_not_change_goodput_latency_and_memory(store: Path) -> None:
    made = made_up(400, range(10, 31), seed=2)
    # An answer takes 90 ms of work, and refusing the nine requests that come with it 3 ms.
    bodies = [request_of(made[start : start + 100]) for start in range(0, 400, 100)]
    rounds = []
    with Process("small", store, queue=QUEUE, cache_bytes=0) as process:
        process.ready()
        for _ in range(4):  # what else the machine does can only worsen it: the best round counts
            rounds.append(overload(process, bodies, seconds=6.0, threads=THREADS))
            found = rounds[-1]
            assert found.lost == 0
            assert found.refused_per_second > 5 * found.peak_per_second
            assert found.memory_after <= 1.2 * found.memory_before
            goodput = found.goodput_per_second / found.peak_per_second
            if goodput >= 0.9 and found.overload_p99_ms <= 2 * found.peak_p99_ms:
                return
    pytest.fail(f"goodput under 90 % of peak, or p99 over twice the normal: {rounds}")


def test_memory_does_not_grow_with_sentences(store: Path) -> None:
    made = made_up(32_000, range(10, 11), seed=3)
    rounds = []
    with Process("small", store, cache_bytes=1 << 20) as process:
        process.ready()
        # The heap settles over some 20,000 sentences; a leak shows in every round.
        for start in range(0, len(made), 8000):
            rounds.append(soak(process, made[start : start + 8000]))
            if rounds[-1].is_flat:
                return
    pytest.fail(f"memory grew in every round: {rounds}")


def test_memory_that_grows_with_sentences_is_not_flat(store: Path) -> None:
    made = made_up(8000, range(10, 11), seed=3)
    with Process("small", store, cache_bytes=1 << 40) as process:  # keeps every answer
        process.ready()
        for start in (0, 4000):
            found = soak(process, made[start : start + 4000])
            assert not found.is_flat, found


@alone
def test_300_slow_clients_are_closed_without_delaying_others(store: Path) -> None:
    head = b"POST /v1/parse HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
    begun = (b"", b"GET / HT", head + b"content-length: 100\r\n\r\n{")
    bodies = [request_of([one]) for one in made_up(64, range(10, 21), seed=4)]
    with Process("small", store, header_seconds=2, body_seconds=2, cache_bytes=0) as process:
        process.ready()
        ratios = []
        for _ in range(3):  # what else the machine does can only add: the best of three counts
            quiet = asyncio.run(busy(process, bodies, 2.0, 2))
            slow = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(300)]
            for number, client in enumerate(slow):
                client.sendall(begun[number % len(begun)])
            opened = time.monotonic()
            loaded = asyncio.run(busy(process, bodies, 2.0, 2))
            assert all(is_closed(client, opened + 5) for client in slow)
            ratios.append(percentile(loaded.seconds, 0.99) / percentile(quiet.seconds, 0.99))
            assert loaded.lost == quiet.lost == 0
    assert min(ratios) <= 2


def is_closed(client: socket.socket, by: float) -> bool:
    """Wait for the service to close this connection, and return True if it does in time."""
    with client:
        client.settimeout(max(by - time.monotonic(), 0.001))
        try:
            while client.recv(1 << 12):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
    return True


@alone
def test_sigterm_loses_no_request_twenty_times(store: Path) -> None:
    bodies = [request_of(made_up(5, range(5, 15), seed=seed)) for seed in range(8)]

    async def end_all(processes: list[Process]) -> None:
        found = await asyncio.gather(*(until_refused(one, bodies) for one in processes))
        assert [ended for _, ended in found] == [CLIENTS] * len(processes)
        assert all(answered > 0 for answered, _ in found)

    for _ in range(5):
        with ExitStack() as stack:
            four = [
                stack.enter_context(Process("small", store, drain_seconds=0.2)) for _ in range(4)
            ]
            for process in four:
                process.ready()
            asyncio.run(end_all(four))
            assert [process.child.wait(timeout=20) for process in four] == [0] * 4


async def until_refused(process: Process, bodies: list[bytes]) -> tuple[int, int]:
    """Count the requests that clients had answered, and the clients ended by a closed port.

    Lost, which is raised for a request that was sent and not answered, is not caught.
    """
    answered = ended = 0

    async def client(number: int) -> None:
        nonlocal answered, ended
        connection = Connection(process.port)
        while True:
            try:
                answer = await connection.ask("POST", "/v1/parse", bodies[number % len(bodies)])
            except Lost:
                raise
            except OSError:  # no connection, so nothing was sent
                ended += 1
                return
            assert answer.status == 200
            answered += 1
            number += 1

    clients = [asyncio.create_task(client(number)) for number in range(CLIENTS)]
    await asyncio.sleep(0.3)
    process.child.send_signal(signal.SIGTERM)
    await asyncio.gather(*clients)
    return answered, ended


@pytest.fixture
def reloadable(store: Path, tmp_path: Path) -> Iterator[tuple[Process, Path]]:
    """Make a service whose models may be reloaded, and its own copy of the store."""
    own = tmp_path / "store"
    shutil.copytree(store / "small", own / "small")
    keys = tmp_path / "admins"
    keys.write_text(f"me {hashlib.sha256(ADMIN.encode()).hexdigest()}\n")
    with Process("small", own, admin_keys_file=keys) as process:
        yield process.ready(), own


def reload(process: Process) -> tuple[int, dict[str, object]]:
    key = {"Authorization": f"Bearer {ADMIN}"}
    answer = process.ask("POST", "/v1/models/small/reload", None, key)
    return answer.status, answer.json()


def test_fifty_reloads_under_load_lose_no_request(reloadable: tuple[Process, Path]) -> None:
    process, own = reloadable
    configs = (TrainingConfig(), TrainingConfig(members=(member("counts"),)))
    models = [train(TREES, config)[0] for config in configs]
    bundles = [to_bundle(model, facts={}, card="") for model in models]
    sentences = made_up(20, range(3, 12), seed=5)
    expected = [expected_answers(Parser(from_bundle(one)), sentences) for one in bundles]
    assert expected[0] != expected[1]
    body, seen = request_of(sentences), set[int]()

    async def client(done: asyncio.Event) -> None:
        connection = Connection(process.port)
        while not done.is_set():
            answer = await connection.ask("POST", "/v1/parse", body)
            assert answer.status == 200
            version = answer.json()["model"]["version"]
            seen.add(version)
            # odd versions are the spectral model, even ones the counts
            assert answer.json()["sentences"] == expected[(version + 1) % 2]
        await connection.close()

    async def run() -> None:
        done = asyncio.Event()
        clients = [asyncio.create_task(client(done)) for _ in range(3)]
        for version in range(2, 52):
            published = await asyncio.to_thread(publish, own, "small", bundles[(version + 1) % 2])
            status, told = await asyncio.to_thread(reload, process)
            assert (status, told["version"], told["hash"]) == (200, version, published.hash)
        done.set()
        await asyncio.gather(*clients)

    asyncio.run(run())
    assert len(seen) > 25


def expected_answers(parser: Parser, sentences: list[list[str]]) -> list[dict[str, object]]:
    analyses = parser.parse([Sentence(tuple(one)) for one in sentences])
    return [json.loads(json.dumps(analysis_json(one))) for one in analyses]


def test_a_corrupt_new_version_is_refused_and_the_old_one_keeps_serving(
    reloadable: tuple[Process, Path],
) -> None:
    process, own = reloadable
    before = process.ask("POST", "/v1/parse", {"text": "The dog slept."}).json()
    reference, _ = train_and_publish(TREES, TrainingConfig(), store=own, name="small")
    assert reference.version == 2
    tensors = own / "small" / "2" / "tensors.safetensors"
    content = bytearray(tensors.read_bytes())
    content[len(content) // 2] ^= 1
    tensors.chmod(0o644)
    tensors.write_bytes(content)
    status, told = reload(process)
    assert status == 409
    assert "tensors.safetensors" in str(told["detail"])
    assert process.ask("GET", "/v2/health/ready").status == 200
    assert process.ask("POST", "/v1/parse", {"text": "The dog slept."}).json() == before
    assert before["model"]["hash"] == resolve("small@1", own).hash


def test_only_administrators_reload(reloadable: tuple[Process, Path]) -> None:
    process, _ = reloadable
    answer = process.ask("POST", "/v1/models/small/reload")
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert reload(process)[0] == 200


def test_2000_concurrent_requests_have_the_answers_of_sequential_ones(
    process: Process, parser: Parser
) -> None:
    sentences = made_up(2000, range(2, 14), seed=6)
    expected = expected_answers(parser, sentences)
    answers: list[object] = [None] * len(sentences)

    async def client(waiting: list[int]) -> None:
        connection = Connection(process.port)
        while waiting:
            number = waiting.pop()
            answer = await connection.ask("POST", "/v1/parse", request_of([sentences[number]]))
            (answers[number],) = answer.json()["sentences"]
        await connection.close()

    async def run() -> None:
        waiting = list(range(len(sentences)))
        await asyncio.gather(*(client(waiting) for _ in range(16)))

    asyncio.run(run())
    assert answers == expected
    for size in (7, 250):
        for start in range(0, 500, size):
            some = slice(start, min(start + size, 500))
            answer = process.ask("POST", "/v1/parse", request_of(sentences[some]))
            assert answer.json()["sentences"] == expected[some]
    lines = "\n".join(json.dumps({"tokens": one}) for one in sentences).encode()
    found = process.ask("POST", "/v1/batch", lines).body.splitlines()
    assert [json.loads(line)["sentence"] for line in found] == expected
