"""Batches in a process of its own: slow clients, clients that go, and the end of the service."""

import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving import Process

from tests.serve.conftest import made_up

HEAD = (
    b"POST /v1/batch HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-ndjson\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def chunk(*lines: object) -> bytes:
    data = b"".join(json.dumps(one).encode() + b"\n" for one in lines)
    return b"%x\r\n" % len(data) + data + b"\r\n"


def long_lines(number: int) -> list[object]:
    """Make lines that take their time, all of them different."""
    return [{"tokens": one} for one in made_up(number, range(40, 60), seed=7)]


class Batch:
    """One open batch: send chunks, and read its lines as they come."""

    def __init__(self, process: Process) -> None:
        self.socket = socket.create_connection(("127.0.0.1", process.port), timeout=30)
        self.socket.sendall(HEAD)
        self.file = self.socket.makefile("rb")

    def send(self, *lines: object) -> None:
        self.socket.sendall(chunk(*lines))

    def end(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def line(self) -> dict[str, Any] | None:
        """Read one answer, or None at the end of the batch."""
        while raw := self.file.readline():
            if raw.startswith(b"{"):
                found: dict[str, Any] = json.loads(raw)
                return found
            if raw == b"0\r\n":
                return None
        raise AssertionError("the connection was closed inside the answer")

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture(scope="module")
def patient(store: Path) -> Iterator[Process]:
    settings = {"body_seconds": 1, "send_seconds": 1, "cache_bytes": 0, "batches": 4}
    with Process("small", store, **settings) as process:
        yield process.ready()


def gauge(process: Process, name: str) -> float:
    text = process.ask("GET", "/metrics").body.decode()
    found = re.search(rf"^lpcfg_{name} (\S+)$", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_a_batch_goes_on_as_long_as_lines_come(patient: Process) -> None:
    with closing(Batch(patient)) as batch:
        for _ in range(4):  # longer than a body may take
            batch.send("The dog slept.")
            answer = batch.line()
            assert answer is not None
            assert "sentence" in answer
            time.sleep(0.5)
        stopped = time.monotonic()
        answer = batch.line()
        assert answer is not None
        assert (answer["line"], answer["problem"]["type"]) == (5, "/docs#problem-slow")
        assert batch.line() is None
        assert batch.file.read() == b"\r\n"
        assert 0.4 < time.monotonic() - stopped < 4


def test_a_line_in_small_pieces_comes_too_slowly(patient: Process) -> None:
    with closing(Batch(patient)) as batch:
        started = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - started < 6:
                batch.socket.sendall(b"1\r\n \r\n")
                time.sleep(0.1)
        answer = batch.line()
        assert answer is not None
        assert answer["problem"]["status"] == 408
        assert time.monotonic() - started < 5


def test_work_for_a_batch_stops_when_its_client_is_gone(patient: Process) -> None:
    batches = [Batch(patient) for _ in range(2)]
    lines = [long_lines(400) for _ in batches]
    for batch, some in zip(batches, lines, strict=True):
        feeding = threading.Thread(target=feed, args=(batch.socket, some), daemon=True)
        feeding.start()
        assert batch.line() is not None
    assert gauge(patient, "queue_requests") > 0
    for batch in batches:
        batch.socket.shutdown(socket.SHUT_RDWR)
        batch.close()
    closed = time.monotonic()
    while gauge(patient, "queue_requests") or gauge(patient, "batches"):
        assert time.monotonic() - closed < 0.5
        time.sleep(0.01)


def feed(to: socket.socket, lines: list[object]) -> None:
    with suppress(OSError):
        to.sendall(chunk(*lines))


def test_batches_of_a_client_have_a_limit_and_delay_no_single_request(patient: Process) -> None:
    batches = [Batch(patient) for _ in range(2)]
    for batch in batches:
        batch.send("The dog slept.")
        assert batch.line() is not None
    refused = patient.ask("POST", "/v1/batch", b'"It is."\n')
    assert (refused.status, refused.json()["type"]) == (503, "/docs#problem-overload")
    for batch in batches:
        threading.Thread(target=feed, args=(batch.socket, long_lines(300)), daemon=True).start()
    for _ in range(20):
        assert patient.ask("POST", "/v1/parse", {"text": "A dog saw the cat."}).status == 200
    assert gauge(patient, "batches") == 2
    for batch in batches:
        batch.close()


def test_a_slow_reader_gets_the_whole_of_a_large_answer(patient: Process) -> None:
    sentences = [{"tokens": one} for one in made_up(60, range(30, 31), seed=8)]
    body = json.dumps({"sentences": sentences, "k": 50}).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
        client.settimeout(30)
        client.connect(("127.0.0.1", patient.port))
        head = b"POST /v1/parse HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
        client.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        told = client.recv(1 << 14)
        size = int(re.search(rb"content-length: (\d+)", told)[1])  # type: ignore[index]
        got, started = len(told.partition(b"\r\n\r\n")[2]), time.monotonic()
        while got < size:
            received = len(client.recv(1 << 17))
            assert received, f"closed after {got} of {size}"
            got += received
            time.sleep(min(received / size * 3, 0.5))  # in three times as long as may pass unread
    assert got == size
    assert time.monotonic() - started > 2


def test_at_sigterm_every_line_is_answered_or_has_a_problem(store: Path) -> None:
    lines = long_lines(3000)
    with Process("small", store, timeout_seconds=3, cache_bytes=0) as process:
        process.ready()
        batch = Batch(process)
        found: list[dict[str, Any]] = []

        def read() -> None:
            while (answer := batch.line()) is not None:
                found.append(answer)

        reading = threading.Thread(target=read)
        reading.start()
        for start in range(0, 3000, 500):
            batch.send(*lines[start : start + 500])
            if start == 500:
                process.child.send_signal(signal.SIGTERM)
        batch.end()
        reading.join(30)
        assert process.child.wait(timeout=20) == 0
        batch.close()
    assert [one["line"] for one in found] == list(range(1, 3001))
    problems = [one["problem"] for one in found if "problem" in one]
    assert {one["type"] for one in problems} == {"/docs#problem-ending"}
    assert 0 < len(problems) < 3000
