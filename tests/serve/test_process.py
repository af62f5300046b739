"""The service in a process of its own: slow clients, deadlines, signals, logs."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.serving import Connection, Lost, Process

from tests.serve.conftest import made_up


def request(number: int, lengths: range) -> dict[str, object]:
    """Return a request with so many made-up sentences, for which the small model takes its time."""
    return {"sentences": [{"tokens": tokens} for tokens in made_up(number, lengths, seed=1)]}


LONG = request(256, range(60, 61))
"""Work for seconds, in steps that are short beside 250 ms."""


def test_logs_are_json_and_never_say_what_was_sent(store: Path) -> None:
    secret = "xylophonist"
    with Process("small", store, max_tokens=5) as process:
        process.ready()
        for path, value in (
            ("/v1/parse", {"text": f"The {secret} slept."}),
            ("/v1/parse", {"text": f"The {secret} slept and slept and slept."}),
            ("/v1/parse", {"text": 3, secret: 4}),
            ("/v1/marginals", {"sentences": [{"tokens": [secret], "constraints": secret}]}),
            ("/v1/tree-probability", {"trees": [f"(S {secret}", f"(S (N {secret}))"]}),
            ("/v1/batch", f'"{secret}"\n{secret}'.encode()),
            (f"/v1/models/{secret}", None),
            (f"/{secret}?{secret}", None),
        ):
            process.ask("GET" if value is None else "POST", path, value, {"traceparent": secret})
        assert process.terminate() == 0
    events = [json.loads(line) for line in process.log]
    requests = [one for one in events if one["event"] == "request"]
    assert [one["status"] for one in requests] == [200, 422, 422, 422, 200, 200, 404, 404]
    assert {one["endpoint"] for one in requests} >= {"/v1/parse", "/v1/batch", "other"}
    for one in requests:
        assert one.keys() >= {"method", "seconds", "request_id", "trace_id", "timestamp", "level"}
    assert secret not in "".join(process.log)


def test_a_body_without_a_length_is_cut_off_at_the_limit(store: Path) -> None:
    with Process("small", store, max_body_bytes=1000) as process:
        process.ready()
        with socket.create_connection(("127.0.0.1", process.port), timeout=10) as client:
            client.sendall(
                b"POST /v1/parse HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
            )
            for _ in range(11):
                client.sendall(b"64\r\n" + b"x" * 100 + b"\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += client.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b'"limit":1000' in answer


def closed_after(client: socket.socket) -> tuple[float, bytes]:
    """Measure the seconds until the service closes this connection, and return what it said
    before.
    """
    started, said = time.monotonic(), b""
    client.settimeout(10)
    try:
        while data := client.recv(1 << 16):
            said += data
    except ConnectionResetError:
        pass
    return time.monotonic() - started, said


HEAD = b"POST /v1/parse HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def impatient(store: Path) -> Iterator[Process]:
    settings = {"header_seconds": 1, "body_seconds": 1, "send_seconds": 1, "keep_alive_seconds": 1}
    with Process("small", store, **settings) as process:
        yield process.ready()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", b"408 .*the whole head"),
        (b"GET /v2/health/live HTTP/1.1\r\nhost", b"408 .*the whole head"),
        (HEAD + b"content-length: 100\r\n\r\n{", b"408 .*the whole body"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n", b"408 .*the whole body"),
        (b"GET /v2/health/live HTTP/1.1\r\nhost: a\r\n\r\n", b"200 OK"),
        (b"GET /nope HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab", b"404 "),
    ],
)
def test_a_client_that_stops_sending_is_closed(
    impatient: Process, sent: bytes, said: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port)) as client:
        client.sendall(sent)
        seconds, answer = closed_after(client)
    assert re.search(said, answer, re.DOTALL), answer
    # a second, a look every quarter, and time for a busy machine
    assert 0.9 < seconds < 4


@pytest.mark.parametrize("begun", [b"GET / HTTP/1.1\r\nx: ", HEAD + b"content-length: 99\r\n\r\n"])
def test_a_client_that_sends_too_slowly_is_closed(impatient: Process, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port)) as client:
        started = time.monotonic()
        client.sendall(begun)
        try:
            while time.monotonic() - started < 10:
                client.sendall(b" ")
                time.sleep(0.1)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert time.monotonic() - started < 4


def test_a_client_that_does_not_read_its_answer_is_closed(impatient: Process) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", impatient.port))
        client.setblocking(False)
        lines = b'"The dog saw a cat and the cat saw a dog."\n' * 200
        sent = [HEAD.replace(b"parse", b"batch") + b"transfer-encoding: chunked\r\n\r\n"]
        chunk = b"%x\r\n" % len(lines) + lines + b"\r\n"
        started, closed = time.monotonic(), False
        data = memoryview(sent[0])
        while not closed and time.monotonic() - started < 30:
            try:
                data = data[client.send(data) :] or memoryview(chunk)
            except BlockingIOError:
                time.sleep(0.02)
            except (BrokenPipeError, ConnectionResetError):
                closed = True
    assert closed


def test_bytes_that_are_not_http_get_a_problem(impatient: Process) -> None:
    with socket.create_connection(("127.0.0.1", impatient.port)) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
        _, answer = closed_after(client)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"application/problem+json" in answer


def test_heads_have_a_limit(impatient: Process) -> None:
    for header in (b"x: " + b"y" * 70_000, b"x: y\r\n" * 15_000):
        with socket.create_connection(("127.0.0.1", impatient.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\n" + header + b"\r\n\r\n")
            _, answer = closed_after(client)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")


def test_the_deadline_is_kept_and_the_work_stops(store: Path) -> None:
    with Process("small", store, timeout_seconds=0.5, cache_bytes=0) as process:
        process.ready()
        started = time.monotonic()
        answer = process.ask("POST", "/v1/parse", LONG)
        assert answer.status == 504
        assert "within 0.5 seconds" in answer.json()["detail"]
        assert time.monotonic() - started < 1.5
        assert idle_within(process, 0.25)


def test_work_stops_when_its_client_disconnects(process: Process) -> None:
    body = json.dumps(LONG).encode()
    with socket.create_connection(("127.0.0.1", process.port)) as client:
        client.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
        wait_for(lambda: queued(process) > 0)
    assert idle_within(process, 0.25)


def queued(process: Process) -> float:
    text = process.ask("GET", "/metrics").body.decode()
    found = re.search(r"^lpcfg_queue_requests (\S+)$", text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def wait_for(condition: object, seconds: float = 10.0) -> float:
    started = time.monotonic()
    while not condition():  # type: ignore[operator]
        assert time.monotonic() - started < seconds
        time.sleep(0.01)
    return time.monotonic() - started


def idle_within(process: Process, seconds: float) -> bool:
    """Return True if nothing is being worked on after so many seconds (or twice that, if busy)."""
    return wait_for(lambda: queued(process) == 0) < 2 * seconds


def test_liveness_answers_at_full_load(process: Process) -> None:
    async def run() -> list[float]:
        async def load() -> None:
            connection = Connection(process.port)
            while not done.is_set():
                await connection.ask("POST", "/v1/parse", work)
            await connection.close()

        work, done = request(16, range(8, 60)), asyncio.Event()
        loads = [asyncio.create_task(load()) for _ in range(4)]
        live, seconds = Connection(process.port), []
        await asyncio.sleep(0.2)
        for _ in range(100):
            started = time.perf_counter()
            assert (await live.ask("GET", "/v2/health/live")).status == 200
            seconds.append(time.perf_counter() - started)
            await asyncio.sleep(0.01)
        done.set()
        await asyncio.gather(*loads)
        await live.close()
        return seconds

    seconds = sorted(asyncio.run(run()))
    assert seconds[94] < 0.1  # 95 of 100, on a machine that tests other things as well


@pytest.mark.parametrize("model", ["none", "small@7"])
def test_a_missing_model_ends_the_command_at_once(store: Path, model: str) -> None:
    command = [sys.executable, "-m", "lpcfg", "serve", "--model", model, "--store", str(store)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1
    assert re.search(f"lpcfg: error: expected a (model|published version).*{store}", run.stderr)


def refusal(store: Path, *given: str, before: str = "") -> str:
    """Return what `lpcfg serve` says of an address it cannot listen on; run `before` first."""
    command = ["serve", "--model", "small", "--store", str(store), *given]
    code = f"import errno, socket, sys\nfrom lpcfg.cli import main\n{before}\nsys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", code, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    told = run.stderr.removeprefix("lpcfg: error: expected a free address to listen on, got ")
    assert "expected" not in told
    return told.strip()


HERE = "name an address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for others too"


@pytest.mark.parametrize(
    ("host", "got"),
    [
        ("999.1.1.1", "Unknown name"),
        ("a" * 64 + ".b", "Unknown name"),
        # for documentation (RFC 5737), so of no machine
        ("192.0.2.1", "Cannot assign requested address"),
    ],
)
def test_an_address_of_no_machine_ends_the_command(store: Path, host: str, got: str) -> None:
    told = refusal(store, "--host", host, "--port", "0")
    assert told == f"`{got}` for host {host} and port 0: {HERE}"


def test_a_port_in_use_ends_the_command(store: Path, process: Process) -> None:
    assert refusal(store, "--port", str(process.port)) == (
        f"`Address already in use` for host 127.0.0.1 and port {process.port}: end what listens "
        "there, or name another port (0 takes any that is free)"
    )


def test_a_port_that_needs_a_privilege_ends_the_command(store: Path) -> None:
    before = (  # whoever tests may have it
        "def denied(*_, **__): raise PermissionError(errno.EACCES, 'Permission denied')\n"
        "socket.create_server = denied"
    )
    assert refusal(store, "--port", "80", before=before) == (
        "`Permission denied` for host 127.0.0.1 and port 80: name a port from 1024 up, or run this "
        "as who may listen there"
    )


def test_interrupted_it_ends_at_once(store: Path) -> None:
    with Process("small", store, drain_seconds=60) as process:
        process.ready()
        process.child.send_signal(signal.SIGINT)
        assert process.child.wait(timeout=10) == 130


def test_sigterm_drains_before_it_ends(store: Path) -> None:
    with Process("small", store, drain_seconds=1) as process:
        process.ready()
        process.child.send_signal(signal.SIGTERM)
        wait_for(lambda: process.ask("GET", "/v2/health/ready").status == 503)
        answer = process.ask("POST", "/v1/parse", {"text": "The dog slept."})
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        assert process.child.wait(timeout=10) == 0
        with pytest.raises((OSError, Lost)):
            process.ask("GET", "/v2/health/live")
