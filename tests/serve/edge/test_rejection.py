"""Refusals by the head alone: on the connection, as bytes, without the application."""

import json
from typing import Any

from lpcfg.serve.edge.connection import HttpConnection
from lpcfg.serve.http.context import context_of
from lpcfg.serve.scheduling.admission import Priority, Ticket
from lpcfg.serve.state import Service
from tests.serve.edge.wire import Wire, answers, asked, connected

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


def test_an_unread_body_that_waits_for_leave_ends_the_connection(full: Service) -> None:
    def ask(connection: HttpConnection, wire: Wire) -> None:
        connection.data_received(HEAD[:-2] + b"expect: 100-continue\r\n\r\n")
        assert answers(wire.written)[0][1]["connection"] == "close"
        assert wire.closed

    assert asked(full, ask) == []
