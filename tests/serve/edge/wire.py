"""A connection of the service without a socket: what it writes to, and who uses it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from lpcfg.serve.edge.connection import HttpConnection, protocol
from lpcfg.serve.edge.rejection import EarlyRejection
from lpcfg.serve.state import Service


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5), "sockname": ("192.0.2.2", 80)})
        self.pieces: list[bytes] = []
        self.closed = False
        self.unread = 0

    @property
    def written(self) -> bytes:
        """All that was written."""
        return b"".join(self.pieces)

    def write(self, data: Any) -> None:
        self.pieces.append(data)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return self.unread

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


Ask = Callable[[HttpConnection, Wire], Awaitable[None] | None]


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
        if (waited := ask(connection, wire)) is not None:
            await waited
        await asyncio.sleep(0)
        connection.connection_lost(None)

    asyncio.run(run())
    return wire
