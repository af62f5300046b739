"""Clients that would rather speak another protocol are answered in HTTP/1.1, bodies and all."""

import asyncio
import json
import shutil
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving import Process
from uvicorn.config import Config
from uvicorn.server import ServerState

from lpcfg.settings import Settings
from lpcfg.web.app import create_app
from lpcfg.web.http.deadlines import protocol
from lpcfg.web.http.gate import Gate
from tests.needs import lacking
from tests.web.test_refusals import Wire, answers

BODY = b'{"text": "It works."}'
# As Java 17 and curl 7.88 send them, but for the host.
JAVA = (
    b"POST /v1/parse HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 21\r\n"
    b"Host: 127.0.0.1:8000\r\nHTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n"
    b"Upgrade: h2c\r\nUser-Agent: Java-http-client/17.0.15\r\n"
    b"Content-Type: application/json\r\n\r\n"
) + BODY
CURL = (
    b"POST /v1/parse HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n"
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\nContent-Type: application/json\r\n"
    b"Content-Length: 21\r\n\r\n"
) + BODY
OFFER = b"host: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n"
CHUNKED = (
    b"POST / HTTP/1.1\r\n" + OFFER + b"transfer-encoding: chunked\r\n\r\n"
    b"5\r\n" + BODY[:5] + b"\r\n10\r\n" + BODY[5:] + b"\r\n0\r\n\r\n"
)
WEBSOCKET = JAVA.replace(b"h2c", b"websocket")
PLAIN = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 21\r\n\r\n" + BODY


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the method, the path and the body."""
    body, more = scope["method"].encode() + b" " + scope["path"].encode() + b" ", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def told(store: Path, pieces: Iterable[bytes]) -> Wire:
    """Send pieces of bytes, one after the other, to a connection of `echo`."""
    service = create_app(Settings(model="small", model_store=str(store))).state.service
    wire = Wire()

    async def run() -> None:
        config = Config(
            echo, http=protocol(service.settings, Gate(service, frozenset())), log_config=None
        )
        config.load()
        connection = config.http_protocol_class(config, ServerState(), {})
        connection.connection_made(wire)
        for piece in pieces:
            connection.data_received(piece)
            await asyncio.sleep(0)
        for _ in range(20):  # turns of the loop, of which an answer needs a few
            await asyncio.sleep(0)
        connection.connection_lost(None)

    asyncio.run(run())
    return wire


def echoed(wire: Wire) -> list[bytes]:
    return [body for _, _, body in answers(wire.written)]


@pytest.mark.parametrize("sent", [JAVA, CURL, CHUNKED, WEBSOCKET])
@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_a_body_behind_an_upgrade_is_kept_however_it_comes(
    store: Path, sent: bytes, size: int
) -> None:
    twice = sent + sent + PLAIN
    wire = told(store, (twice[at : at + size] for at in range(0, len(twice), size)))
    path = sent.split(b" ")[1]
    assert echoed(wire) == [b"POST " + path + b" " + BODY] * 2 + [b"POST / " + BODY]


def test_a_body_that_looks_like_a_request_stays_a_body(store: Path) -> None:
    inner = b"GET /inner HTTP/1.1\r\n" + OFFER + b"\r\n"
    head = b"POST / HTTP/1.1\r\n" + OFFER + b"content-length: %d\r\n\r\n" % len(inner)
    assert echoed(told(store, [head + inner])) == [b"POST / " + inner]


def test_an_upgrade_without_a_body_is_answered(store: Path) -> None:
    wire = told(store, [b"GET /a HTTP/1.1\r\n" + OFFER + b"\r\n" + PLAIN])
    assert echoed(wire) == [b"GET /a ", b"POST / " + BODY]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"host: b\r\n", b"400"),
        (b"x: " + b"y" * (1 << 16) + b"\r\n", b"431"),
        (b"content-length: 2\r\ntransfer-encoding: chunked\r\n", b"400"),
    ],
)
def test_a_wrong_head_with_an_upgrade_is_refused(
    store: Path, headers: bytes, status: bytes
) -> None:
    wire = told(store, [b"POST / HTTP/1.1\r\n" + OFFER + headers + b"\r\n{}" + PLAIN])
    ((first, _, _),) = answers(wire.written)
    assert first.split(b" ")[1] == status


def test_connect_is_answered_once(store: Path) -> None:
    wire = told(store, [b"CONNECT a:80 HTTP/1.1\r\n" + OFFER + b"\r\n"])
    assert len(answers(wire.written)) == 1


def test_answers_to_java_and_curl_share_a_connection(process: Process) -> None:
    expected = process.ask("POST", "/v1/parse", BODY).body
    with socket.create_connection(("127.0.0.1", process.port), timeout=60) as client:
        for sent in (JAVA, CURL, JAVA):
            client.sendall(sent)
            received = b""
            while not received.endswith(expected):
                piece = client.recv(1 << 16)
                assert piece, received
                received += piece
            assert received.startswith(b"HTTP/1.1 200 OK\r\n")


ASK = """
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class Ask {
    public static void main(String[] given) throws Exception {
        var client = HttpClient.newHttpClient();
        for (int at = 1; at < given.length; at++) {
            var body = HttpRequest.BodyPublishers.ofString(given[at]);
            var request = HttpRequest.newBuilder(URI.create(given[0]))
                .header("Content-Type", "application/json").POST(body).build();
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body());
        }
    }
}
"""


def test_the_client_of_java_itself_is_answered(process: Process, tmp_path: Path) -> None:
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        lacking("no JDK here: install one to test Java's HttpClient too")
    (tmp_path / "Ask.java").write_text(ASK, encoding="utf-8")
    long = json.dumps({"sentences": ["The dog saw a cat."] * 200, "k": 1})
    bodies = [BODY.decode(), long, BODY.decode()]
    command = [java, str(tmp_path / "Ask.java"), f"http://127.0.0.1:{process.port}/v1/parse"]
    run = subprocess.run(
        [*command, *bodies], capture_output=True, text=True, timeout=60, check=False
    )
    expected = [process.ask("POST", "/v1/parse", one.encode()).body.decode() for one in bodies]
    assert run.stdout.splitlines() == [f"200 {one}" for one in expected], run.stderr
