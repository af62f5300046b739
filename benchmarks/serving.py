"""A real service in a process of its own, and small HTTP clients, for benchmarks and tests.

The clients do little, because on a small machine they share the cores with the service that they
measure: Connection is little more than asyncio streams, Caller no more than a socket.
"""

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

STARTS_WITHIN = 120.0  # seconds; compiling all kernels on a fresh machine takes most of them


class Process:
    """`lpcfg serve` on a free port, until the end of the block."""

    def __init__(self, model: str, store: Path | str, **settings: object) -> None:
        environment = {f"LPCFG_{name.upper()}": str(value) for name, value in settings.items()}
        self._command = [sys.executable, "-m", "lpcfg", "serve"]
        self._command += ["--model", model, "--store", str(store), "--port", "0"]
        self._environment = {**os.environ, **environment}
        self.log: list[str] = []
        self.port = 0

    def __enter__(self) -> Self:
        self.child = subprocess.Popen(
            self._command, env=self._environment, stderr=subprocess.PIPE, text=True
        )
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()
        if not self._listening.wait(STARTS_WITHIN) or not self.port:
            self.__exit__(None, None, None)
            raise RuntimeError("the service did not start:\n" + "".join(self.log))
        return self

    def _read_log(self) -> None:
        if self.child.stderr is None:
            return
        for line in self.child.stderr:
            self.log.append(line)
            found = re.search(r'"port": (\d+)', line)
            if found and not self.port:
                self.port = int(found[1])
                self._listening.set()
        self._listening.set()

    def __exit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self._reader.join()
        if self.child.stderr is not None:
            self.child.stderr.close()

    def ready(self) -> Self:
        """Wait until the models are ready, and return this process."""
        end = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < end and self.child.poll() is None:
            if self.ask("GET", "/v2/health/ready").status == 200:
                return self
            time.sleep(0.02)
        raise RuntimeError("the service was never ready:\n" + "".join(self.log))

    def terminate(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(timeout=60)

    def ask(
        self, method: str, path: str, value: Any = None, headers: Mapping[str, str] | None = None
    ) -> "Answer":
        """Send one request on a connection of its own.

        `value` is sent as JSON unless it is bytes.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, _body(value), {**_JSON, **(headers or {})})
            response = connection.getresponse()
            told = {name.lower(): text for name, text in response.getheaders()}
            return Answer(response.status, told, response.read())
        finally:
            connection.close()

    def resident_bytes(self) -> int:
        """Return the memory that the process has in RAM."""
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


_JSON = {"content-type": "application/json"}


def _body(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return json.dumps(value).encode()


@dataclass(frozen=True)
class Answer:
    """Status, headers by lower-case name, and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Read the body as JSON."""
        return json.loads(self.body)


class Lost(Exception):
    """A request that was sent on an open connection and not answered."""


class Connection:
    """One connection for many requests, opened anew after the service closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, value: Any = None, headers: Sequence[str] = ()
    ) -> Answer:
        """Send one request. Raise OSError without a connection, and Lost without a whole answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        try:
            writer.write(prepared(method, path, value, headers))
            answer = await _read(reader)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            await self.close()
            raise Lost(f"{type(error).__name__}: {error}") from error
        if answer.headers.get("connection") == "close":
            await self.close()
        return answer

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._streams is not None:
            (_, writer), self._streams = self._streams, None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class Caller:
    """One connection that sends requests given as bytes and reads whole answers, nothing else.

    It takes some 20 microseconds for a request, as a caller in a compiled language would.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: bytes) -> bytes:
        """Send a request of `prepared` and return the body of its answer. Raise Lost if not 200."""
        self._socket.sendall(request)
        answer = bytearray()
        while (end := answer.find(b"\r\n\r\n")) < 0:
            self._receive(answer)
        length = _LENGTH.search(answer, 0, end + 2)
        if length is None or not answer.startswith(b"HTTP/1.1 200 "):
            raise Lost(answer[:end].decode("latin-1"))
        start = end + 4
        while len(answer) < start + int(length[1]):
            self._receive(answer)
        return bytes(answer[start:])

    def _receive(self, answer: bytearray) -> None:
        piece = self._socket.recv(1 << 18)
        if not piece:
            raise Lost("the connection was closed")
        answer += piece


_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n")


def prepared(method: str, path: str, value: Any = None, headers: Sequence[str] = ()) -> bytes:
    """Write a request as bytes. `value` is sent as JSON unless it is bytes."""
    body = _body(value) or b""
    head = [f"{method} {path} HTTP/1.1", "host: localhost", *headers]
    head += ["content-type: application/json", f"content-length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


async def _read(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ")[1])
    headers = {}
    for line in head[1:-2]:
        name, _, text = line.partition(":")
        headers[name.lower()] = text.strip()
    if headers.get("transfer-encoding") != "chunked":
        return Answer(status, headers, await reader.readexactly(int(headers["content-length"])))
    body = bytearray()
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return Answer(status, headers, bytes(body))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
