"""Answers are named, counted and logged, whatever becomes of them."""

import pytest

from lpcfg.serve.http.context import Context
from lpcfg.serve.metrics import Metrics
from tests.serve.conftest import Serve


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
