"""Each change of the service to uvicorn's connections by itself, and the parts it relies on."""

import asyncio
import hashlib
import inspect
import json
from typing import Any

import pytest
from uvicorn import server
from uvicorn.protocols.http import flow_control, httptools_impl

from lpcfg.serve.edge.connection import HttpConnection
from lpcfg.serve.state import Service
from tests.serve.edge.wire import Wire, answers, asked, connected

# Parts of uvicorn --------------------------------------------------------------------------------

PINNED = {
    httptools_impl.HttpToolsProtocol: "18fdf324b11bf160",
    httptools_impl.RequestResponseCycle: "e67d470d435dcc1c",
    flow_control.FlowControl: "126debcdaa894c83",
    server.ServerState: "f2260fbf10154746",
    server.Server.handle_exit: "553276efa26e09ea",
    server.Server.on_tick: "60ea49b06ccf68c1",
    server.Server.startup: "2aa1d70a244bfcf2",
    server.Server.shutdown: "9b33c50562992b1e",
}
"""The hashes of the sources of uvicorn 0.54."""


@pytest.mark.parametrize("part", PINNED)
def test_parts_of_uvicorn_that_are_relied_on_have_not_changed(part: Any) -> None:
    """Read what has changed, see that edge/ does right by it, then pin the new hash."""
    found = hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:16]
    assert found == PINNED[part], f"{part.__qualname__} of uvicorn has changed"


# Deadlines ---------------------------------------------------------------------------------------


def impatient(service: Service, **seconds: float) -> Service:
    """Give clients so many seconds, of which the shortest decides how often the clock is read."""
    service.settings = service.settings.model_copy(update=seconds)
    return service


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (b"", b"whole head"),
        (b"GET / HT", b"whole head"),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{", b"whole body"),
    ],
)
def test_who_sends_too_slowly_is_refused(full: Service, sent: bytes, what: bytes) -> None:
    async def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.data_received(sent)
        await asyncio.sleep(0.1)
        assert wire.written == b""
        await asyncio.sleep(0.3)
        first, _, body = answers(wire.written)[0]
        assert (first.split()[1], what in body, wire.closed) == (b"408", True, True)

    async def waits(_: Any, receive: Any, __: Any) -> None:
        await receive()
        await receive()

    connected(impatient(full, header_seconds=0.2, body_seconds=0.2), waits, ask)


def test_an_idle_connection_is_closed_after_its_answer(full: Service) -> None:
    async def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.data_received(GET)
        await asyncio.sleep(0.1)
        assert (len(answers(wire.written)), wire.closed) == (1, False)
        await asyncio.sleep(0.4)
        assert wire.closed

    connected(impatient(full, keep_alive_seconds=0.2, header_seconds=0.2), empty, ask)


def test_who_reads_nothing_of_an_answer_is_closed(full: Service) -> None:
    async def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.data_received(GET)
        wire.unread = 1 << 20
        connection.pause_writing()
        await asyncio.sleep(0.1)
        assert not wire.closed
        await asyncio.sleep(0.4)
        assert wire.closed

    connected(impatient(full, send_seconds=0.2), empty, ask)


GET = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"


async def empty(_: Any, __: Any, send: Any) -> None:
    """Answer with nothing."""
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})


# The end, and clients that go ---------------------------------------------------------------------


def test_a_request_on_its_way_at_the_end_is_answered(full: Service) -> None:
    async def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.shutdown()
        await asyncio.sleep(0.05)
        assert not wire.closed
        connection.data_received(GET)
        await asyncio.sleep(0.05)
        assert len(answers(wire.written)) == 1
        await asyncio.sleep(0.4)
        assert wire.closed

    connected(full, empty, ask)


def test_work_is_told_that_its_client_has_gone(full: Service) -> None:
    told: list[str] = []

    async def waits(scope: Any, receive: Any, _: Any) -> None:
        scope["lpcfg.connection"].when_gone(lambda: told.append(scope["path"]))
        await receive()
        await receive()

    async def ask(connection: HttpConnection, _: Wire) -> None:
        connection.data_received(GET)
        await asyncio.sleep(0)
        assert told == []
        connection.connection_lost(None)
        assert told == ["/"]

    connected(full, waits, ask)


# Refusals -----------------------------------------------------------------------------------------


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


# Heads and bodies in one write --------------------------------------------------------------------

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
