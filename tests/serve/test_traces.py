"""Traces: spans of requests and of their phases, as a collector of OpenTelemetry receives them."""

import gzip
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lpcfg.base.errors import SettingsError
from lpcfg.serve.http.traces import Traces
from lpcfg.serve.scheduling.phases import MOST
from tests.serve.conftest import Serve
from tests.serve.test_jobs import done

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """Receive spans over OTLP: the address, and the list that they come into."""
    received: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                named = {one.key: one.value.string_value for one in resource.resource.attributes}
                assert named["service.name"] == "lpcfg"
                received.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    with collector() as (address, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        yield received


def spans_of(received: list[Any], name: str) -> tuple[Any, list[Any]]:
    """Find the span of this name and those below it."""
    (root,) = (one for one in received if one.name == name)
    return root, [one for one in received if one.parent_span_id == root.span_id]


def values(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_request_has_a_span_with_the_phases_of_its_work(
    serve: Serve, collected: list[Any]
) -> None:
    with serve(traces="otlp", cache_bytes=0) as client:
        trace = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        answer = client.post("/v1/parse", json={"text": "It slept. A cat ran."}, headers=trace)
        client.get("/v2/health/live")
    root, below = spans_of(collected, "POST /v1/parse")
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    assert answer.headers["traceparent"] == f"00-{TRACE}-{root.span_id.hex()}-01"
    assert [one.name for one in below] == ["queue", "tokenize", *["parse", "encode"] * 2]
    assert all(one.trace_id == root.trace_id for one in below)
    times = [(one.start_time_unix_nano, one.end_time_unix_nano) for one in below]
    assert all(start <= end for start, end in times)
    assert max(end for _, end in times) <= root.end_time_unix_nano
    told = values(root)
    assert (told["http.route"], told["http.response.status_code"]) == ("/v1/parse", 200)
    assert (told["lpcfg.sentences"], told["lpcfg.tokens"]) == (2, 7)
    assert told["lpcfg.request_id"] == answer.headers["x-request-id"]
    assert not any("health" in one.name for one in collected)


def test_other_endpoints_and_refusals_have_spans_too(serve: Serve, collected: list[Any]) -> None:
    with serve(traces="otlp") as client:
        client.post("/v1/marginals", json={"text": "It slept."})
        client.post("/v1/tree-probability", json={"trees": ["(S (N it) (V slept))"]})
        client.post("/v1/parse", json={})
        client.post("/v1/batch", content='"It slept."\n' * MOST)
        client.get("/nothing")
    for name, phases in (
        ("POST /v1/marginals", ["queue", "tokenize", "parse", "encode"]),
        ("POST /v1/tree-probability", ["queue", "tokenize", "parse"]),
        ("POST /v1/parse", []),
        ("GET other", []),
    ):
        root, below = spans_of(collected, name)
        assert [one.name for one in below] == phases
        assert values(root)["http.response.status_code"] in (200, 404, 422)
    _, below = spans_of(collected, "POST /v1/batch")
    assert len(below) == MOST  # the first of them


def test_a_job_has_a_span_below_the_request_that_left_it(
    serve: Serve, collected: list[Any], tmp_path: Path
) -> None:
    with serve(traces="otlp", cache_bytes=0, jobs_dir=tmp_path) as client:
        trace = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        job = client.post("/v1/jobs", content='"It slept."\n"A cat ran."\n', headers=trace).json()
        done(client, job)
    asked, _ = spans_of(collected, "POST /v1/jobs")
    root, below = spans_of(collected, "JOB /v1/jobs")
    assert (root.trace_id.hex(), root.parent_span_id) == (TRACE, asked.span_id)
    assert sorted(one.name for one in below) == sorted(["queue", "tokenize", "parse", "encode"] * 2)
    told = values(root)
    assert (told["lpcfg.sentences"], told["lpcfg.tokens"]) == (2, 7)
    assert "http.response.status_code" not in told


def test_a_caller_may_leave_a_trace_out(serve: Serve, collected: list[Any]) -> None:
    with serve(traces="otlp") as client:
        trace = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
        answer = client.post("/v1/parse", json={"text": "It slept."}, headers=trace)
    assert answer.headers["traceparent"].startswith(f"00-{TRACE}-")
    assert answer.headers["traceparent"].endswith("-00")
    assert collected == []


def test_without_the_extra_the_start_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"pip install 'lpcfg\[otel\]'"):
        Traces.otlp()


def test_without_the_setting_no_spans_are_made(client: TestClient) -> None:
    assert client.app.state.service.traces is None  # type: ignore[attr-defined]
