"""Refusals by the head alone: on the connection, as bytes, without the application."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from uvicorn.config import Config
from uvicorn.server import ServerState

from lpcfg.serve.app import create_app
from lpcfg.serve.edge.connection import HttpConnection, protocol
from lpcfg.serve.edge.rejection import EarlyRejection
from lpcfg.serve.http.context import Context, context_of
from lpcfg.serve.metrics import Metrics
from lpcfg.serve.scheduling.admission import Priority, Ticket
from lpcfg.serve.served import Models
from lpcfg.serve.state import Service
from lpcfg.settings import Settings
from tests.serve.conftest import Serve


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5), "sockname": ("192.0.2.2", 80)})
        self.pieces: list[bytes] = []
        self.closed = False

    @property
    def written(self) -> bytes:
        """All that was written."""
        return b"".join(self.pieces)

    def write(self, data: Any) -> None:
        self.pieces.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """Do nothing: a test feeds what it wants."""

    def resume_reading(self) -> None:
        """Do nothing, as above."""


def answers(written: bytes) -> list[tuple[bytes, dict[str, str], bytes]]:
    """Split what was written into answers: first line, headers and body."""
    found = []
    while written:
        head, _, rest = written.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        headers = dict(line.decode().split(": ", 1) for line in lines)
        size = int(headers["content-length"])
        found.append((first, headers, rest[:size]))
        written = rest[size:]
    return found


@pytest.fixture
def full(store: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Make a service whose queue is full."""
    monkeypatch.setattr(Models, "ready", True)
    app = create_app(Settings(model="small", model_store=str(store), queue=0, threads=1))
    service: Service = app.state.service
    service.admission.enter(Priority.SINGLE, "192.0.2.1", 1.0)
    service.admission.enter(Priority.SINGLE, "192.0.2.1", 1.0)
    return service


Ask = Callable[[HttpConnection, Wire], None]


def asked(service: Service, ask: Ask) -> list[str]:
    """Let `ask` use a connection to the service; return the paths that reach the application."""
    reached: list[str] = []

    async def application(scope: Any, _: Any, __: Any) -> None:
        reached.append(scope["path"])

    connected(service, application, ask)
    return reached


def connected(service: Service, application: Any, ask: Ask) -> Wire:
    """Let `ask` use a connection to this application, and return what the connection wrote to."""
    wire = Wire()

    async def run() -> None:
        made = protocol(service.settings, EarlyRejection(service))
        config = Config(application, http=made, log_config=None)
        config.load()
        connection = config.http_protocol_class(config, ServerState(), {})
        connection.connection_made(wire)
        ask(connection, wire)
        await asyncio.sleep(0)
        connection.connection_lost(None)

    asyncio.run(run())
    return wire


HEAD = b"POST /v1/parse HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nx-request-id: me\r\n\r\n"


def test_a_full_service_refuses_without_running_the_application(full: Service) -> None:
    def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.data_received(HEAD)
        (refused,) = answers(wire.written)  # before the body has come
        assert refused[0] == b"HTTP/1.1 503 Service Unavailable"
        assert refused[1]["x-request-id"] == "me"
        assert int(refused[1]["retry-after"]) >= 1
        assert json.loads(refused[2])["type"] == "/docs#problem-overload"
        connection.data_received(b"12345" + HEAD + b"12345")  # the connection stays open
        assert len(answers(wire.written)) == 2
        assert not wire.closed

    assert asked(full, ask) == []
    text = full.metrics.text(full.models).decode()
    assert 'lpcfg_requests_total{endpoint="/v1/parse",status="503"} 2.0' in text


def test_other_paths_pass_a_full_service_by(full: Service) -> None:
    def ask(connection: HttpConnection, _: Wire) -> None:
        connection.data_received(b"GET /v2/health/live HTTP/1.1\r\nhost: a\r\n\r\n")

    assert asked(full, ask) == ["/v2/health/live"]


def test_requests_reach_the_application_once_there_is_room(full: Service) -> None:
    def ask(connection: HttpConnection, wire: Wire) -> None:
        full.admission.leave(Ticket(Priority.SINGLE, "192.0.2.1", 1.0))
        connection.data_received(HEAD)
        assert wire.written == b""

    assert asked(full, ask) == ["/v1/parse"]


def test_the_application_knows_what_the_head_has_told(full: Service) -> None:
    scopes = []

    async def application(scope: Any, _: Any, __: Any) -> None:
        scopes.append(scope)

    def ask(connection: HttpConnection, _: Wire) -> None:
        full.admission.leave(Ticket(Priority.SINGLE, "192.0.2.1", 1.0))
        connection.data_received(HEAD)

    connected(full, application, ask)
    (scope,) = scopes
    assert context_of(scope).has_entered
    assert context_of(scope).request_id == "me"
    assert context_of(scope).address == "192.0.2.1"


LENGTH = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}
NO_LENGTH = {"type": "http.response.start", "status": 200, "headers": []}


def written_for(service: Service, method: bytes, *messages: Any) -> Wire:
    """Return what is written for an application that sends these, and fails if more must come."""

    async def application(_: Any, __: Any, send: Any) -> None:
        for one in messages:
            await send(one)
        if messages[-1].get("more_body", True):
            raise RuntimeError

    def ask(connection: HttpConnection, _: Wire) -> None:
        connection.data_received(method + b" /v2/health/live HTTP/1.1\r\nhost: a\r\n\r\n")

    return connected(service, application, ask)


def body(data: bytes, more: bool = False) -> dict[str, object]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def test_an_answer_of_known_length_is_written_at_once(full: Service) -> None:
    (whole,) = written_for(full, b"POST", LENGTH, body(b"1234")).pieces
    assert whole.endswith(b"\r\n\r\n1234")


def test_later_pieces_of_an_answer_are_written_as_they_come(full: Service) -> None:
    pieces = written_for(full, b"GET", LENGTH, body(b"12", True), body(b"3", True), body(b"4"))
    assert pieces.pieces[0].endswith(b"\r\n\r\n12")
    assert pieces.pieces[1:] == [b"3", b"4"]


def test_the_head_of_an_answer_without_a_length_is_not_kept(full: Service) -> None:
    head, first = written_for(full, b"POST", NO_LENGTH, body(b"12", True)).pieces
    assert head.endswith(b"transfer-encoding: chunked\r\n\r\n")
    assert first == b"2\r\n12\r\n"


@pytest.mark.parametrize(("method", "sent"), [(b"HEAD", [LENGTH, body(b"")]), (b"GET", [LENGTH])])
def test_a_head_that_no_body_follows_is_written(
    full: Service, method: bytes, sent: list[Any]
) -> None:
    assert written_for(full, method, *sent).written.endswith(b"content-length: 4\r\n\r\n")


def test_an_unread_body_that_waits_for_leave_ends_the_connection(full: Service) -> None:
    def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.data_received(HEAD[:-2] + b"expect: 100-continue\r\n\r\n")
        assert answers(wire.written)[0][1]["connection"] == "close"
        assert wire.closed

    assert asked(full, ask) == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
    ],
)
def test_answers_of_the_connection_itself_are_named_and_counted(
    full: Service, sent: bytes, status: int
) -> None:
    def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.data_received(sent)
        ((first, headers, body),) = answers(wire.written)
        assert int(first.split()[1]) == json.loads(body)["status"] == status
        assert headers["x-request-id"]
        assert headers["x-content-type-options"] == "nosniff"
        assert wire.closed

    assert asked(full, ask) == []
    text = full.metrics.text(full.models).decode()
    assert f'lpcfg_requests_total{{endpoint="other",status="{status}"}} 1.0' in text


def test_a_fault_is_named_and_counted(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    with serve() as client:
        monkeypatch.setattr(Metrics, "text", broken)
        answer = client.get("/metrics", headers={"x-request-id": "me"})
        assert (answer.status_code, answer.headers["x-request-id"]) == (500, "me")
        monkeypatch.undo()
        text = client.get("/metrics").text
    assert 'lpcfg_requests_total{endpoint="/metrics",status="500"} 1.0' in text


def test_only_hexadecimal_flags_of_a_trace_are_answered() -> None:
    trace = "00-" + "a" * 32 + "-" + "b" * 16
    for flags, told in (("01", "01"), ("\xe9\xe9", "00"), ("01\r", "00")):
        context = Context.of("GET", [(b"traceparent", f"{trace}-{flags}".encode("latin-1"))])
        assert context.flags == told
