"""One connection: uvicorn's HTTP protocol, and what the service does to it, each with its reason.

deadlines   A client that sends or reads too slowly would be waited for without an end:
            head    header_seconds after its first byte, or after the connection was made
            body    body_seconds after its head, and a second later for each 1024 bytes of it; that
                    of a batch has no end, and the batch itself looks whether lines come
            answer  while less than 1024 bytes a second of it are read, over send_seconds
            idle    keep_alive_seconds after the answer
heads       uvicorn's parser takes heads of any size, and requests with several hosts or none
            (RFC 9112, 3.2): their heads are refused.
upgrades    Java's HttpClient and `curl --http2` send `Upgrade: h2c` with their first request. A
            server may ignore that (RFC 9110, 7.8). uvicorn takes all that comes behind such a head
            for another protocol, so that the request loses its body. Here the parser gets the same
            head again without the header `Upgrade`, and reads on behind it.
refusals    They are problems as all others are. Under overload they are written by the head alone
            (rejection.py).
gone        Work ends when its client goes: the connection tells, even while it is not read from. A
            task that waits for it would take the interpreter's lock from the threads that compute.
joined      uvicorn writes the head of an answer and its body apart, which wakes the client twice.
end         A request that is on its way while the service ends is still read and answered.

tests/serve/edge has a test for each of them, and one that fails when uvicorn changes a part that
this relies on.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Any, Literal

import httptools
import structlog
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from lpcfg.serve.edge.rejection import EarlyRejection
from lpcfg.serve.http.context import CONNECTION, Context
from lpcfg.serve.http.problems import problem
from lpcfg.serve.state import BATCHES
from lpcfg.settings import Settings

_BYTES_PER_SECOND = 1024
_LAST_READS = 0.25  # seconds for reading requests already on their way when the service ends
_log = structlog.get_logger("lpcfg.web")

Phase = Literal["new", "head", "body", "answer"]


def protocol(settings: Settings, rejection: EarlyRejection) -> type["HttpConnection"]:
    """Create the protocol class with these deadlines, behind this early rejection."""
    return type("Protocol", (HttpConnection,), {"settings": settings, "rejection": rejection})


class _Joined:
    """A transport for one answer, whose head it writes together with the first of the body.

    The head of an answer whose length is not known yet goes at once: some clients of batches wait
    for it.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._head: bytes | None = None
        """The head while it waits; None before it, and empty once it is written."""
        self.is_closing = cycle.transport.is_closing

    def write(self, data: bytes) -> None:
        """Write this and the head, or keep the head of an answer that has a body."""
        if self._head:
            data, self._head = self._head + data, b""
        elif self._head is None and self._has_body():
            self._head = data
            return
        self._transport.write(data)

    def _has_body(self) -> bool:
        cycle = self._cycle
        return cycle.expected_content_length > 0 and cycle.scope["method"] != "HEAD"

    def close(self) -> None:
        """Write what is left and close the connection."""
        if self._head:
            self._transport.write(self._head)
        self._transport.close()


class HttpConnection(HttpToolsProtocol):
    """One connection. The clock stops while the service itself has paused reading."""

    settings: Settings
    rejection: EarlyRejection

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._phase: Phase = "new"
        self._since = self.loop.time()
        self._received = 0  # bytes of the present head or body
        self._blocked = 0.0  # seconds since the client has last read enough
        self._unread = 0  # bytes of the answer that were not read then
        self._refused = False
        self._plain_head: bytes | None = None
        """The present head without its wish for another protocol, until that is read."""
        self._tell_gone: Callable[[], None] | None = None
        self._errors = select.poll()
        one = self.settings
        shortest = min(one.header_seconds, one.body_seconds, one.send_seconds)
        self._tick = min(1.0, shortest / 4)
        self._looking = self.loop.call_later(self._tick, self._look)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if (open_socket := transport.get_extra_info("socket")) is not None:
            self._errors.register(open_socket, 0)  # errors are always told

    def connection_lost(self, exc: Exception | None) -> None:
        self._looking.cancel()
        super().connection_lost(exc)
        if self._tell_gone is not None:
            self._tell_gone()

    def shutdown(self) -> None:
        """End the connection when the service ends.

        A request that is already on its way is still read.
        """
        if self.cycle is None or self.cycle.response_complete:
            self._unset_keepalive_if_required()
            self.loop.call_later(_LAST_READS, self._end)
        else:
            super().shutdown()

    def _end(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self.cycle.keep_alive = False

    # For the application --------------------------------------------------------------------------

    def is_gone(self) -> bool:
        """Return True if the client has reset the connection, even if it is not being read from."""
        return self.transport.is_closing() or bool(self._errors.poll(0))

    def when_gone(self, tell: Callable[[], None] | None) -> None:
        """Call this when the client disconnects, at once if it has; None: nobody wants to know."""
        self._tell_gone = tell
        if tell is not None and self.cycle.disconnected:
            tell()

    def close_after_answer(self) -> None:
        """Close the connection once the present answer has ended."""
        self.cycle.keep_alive = False

    # Phases ---------------------------------------------------------------------------------------

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._since = self.loop.time()
        self._received = 0

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unset_keepalive_if_required()
        try:
            self._feed(memoryview(data))
        except httptools.HttpParserError as error:
            self.send_400_response(str(error))
        if self._phase == "head":
            self._check_head(len(data))

    def _feed(self, left: memoryview) -> None:
        """Give bytes to the parser, and every head among them that asks for another protocol once
        more, without its wish.
        """
        while True:
            try:
                self.parser.feed_data(left)
                return
            except httptools.HttpParserUpgrade as stopped:
                left = left[stopped.args[0] :]
                head, self._plain_head = self._plain_head, None
                if head is None:  # of a request that is refused, or of CONNECT
                    return
                self.parser.feed_data(head)

    def on_message_begin(self) -> None:
        self._enter("head")
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        # each header has a colon, a blank and a line break beside its name and its value
        self._check_head(sum(len(name) + len(value) + 4 for name, value in self.headers))
        self._check_hosts()
        if self._refused:
            return
        self._enter("body")
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":  # llhttp takes it for an upgrade
            version = self.parser.get_http_version().encode()
            lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
            lines += [b"%s: %s" % one for one in self.headers if one[0] != b"upgrade"]
            self._plain_head = b"\r\n".join([*lines, b"", b""])
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            self._received += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            self._enter("answer")
            if self._plain_head is None:
                super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._phase == "answer":
            self._since = self.loop.time()
        super().on_response_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Start the application, unless the head alone tells that the request is refused."""
        close = not cycle.keep_alive or cycle.waiting_for_100_continue
        refusal = self.rejection.answer(cycle.scope, cycle.default_headers, close)
        if refusal is None:
            cycle.scope[CONNECTION] = self  # type: ignore[literal-required]
            cycle.transport = _Joined(cycle)  # type: ignore[assignment]
            super()._start_asgi_task(cycle, app)
            return
        cycle.response_started = cycle.response_complete = True  # its body is read and dropped
        self.transport.write(refusal)
        if close:
            self.transport.close()
        self.on_response_complete()

    def _check_head(self, more: int) -> None:
        self._received += more
        most = self.settings.max_header_bytes
        if self._received > most and not self._refused:
            self._refuse(
                "head-limit",
                f"expected at most {most} bytes before the body, got {self._received}: send "
                "shorter headers",
            )

    def _check_hosts(self) -> None:
        """Refuse a request with more hosts than one, or with none (RFC 9112, 3.2)."""
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts != 1 and not self._refused and (hosts or self.parser.get_http_version() == "1.1"):
            self._refuse("http", f"expected one header Host, got {hosts}: send one")

    # Deadlines ------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._looking = self.loop.call_later(self._tick, self._look)
        if self.flow.read_paused:
            self._since += self._tick
        self._look_at_reading()
        if self._blocked > self.settings.send_seconds:
            self._log_slow("answer")
            self.transport.abort()
        elif self.loop.time() - self._since > self._allowed():
            if self._phase == "answer" or self._is_answered():
                self.transport.close()
            else:
                self._log_slow(self._phase)
                self._refuse(
                    "slow",
                    f"expected the whole {'body' if self._phase == 'body' else 'head'} of the "
                    f"request within {self._allowed():g} seconds, got {self._received} bytes: "
                    "send it faster",
                )

    def _look_at_reading(self) -> None:
        """Note whether the client reads what is written, and how fast."""
        unread = self.transport.get_write_buffer_size()
        enough = _BYTES_PER_SECOND * self.settings.send_seconds
        if not self.flow.write_paused or unread <= self._unread - enough:
            self._blocked, self._unread = 0.0, unread
        else:
            self._blocked += self._tick
            self._unread = max(self._unread, unread)

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def _allowed(self) -> float:
        one = self.settings
        match self._phase:
            case "body" if self.scope["path"] in BATCHES and not self._is_answered():
                return float("inf")
            case "body":
                return one.body_seconds + self._received / _BYTES_PER_SECOND
            case "answer":
                idle = self.cycle.response_complete and not self.pipeline
                return one.keep_alive_seconds if idle else float("inf")
            case _:
                return one.header_seconds

    def _log_slow(self, phase: str) -> None:
        _log.info("slow client", phase=phase, bytes=self._received)

    # Refusals -------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP. uvicorn calls this."""
        self._refuse("http", f"expected HTTP, got something else: {msg}")

    def _refuse(self, kind: str, detail: str) -> None:
        """Answer with a problem, if no answer has begun, and close the connection."""
        self._refused = True
        cycle = self.cycle
        under_way = cycle is not None and not cycle.response_complete
        if under_way:
            cycle.disconnected = True
            cycle.message_event.set()
            if self._tell_gone is not None:
                self._tell_gone()
        if under_way and cycle.response_started:
            self.transport.abort()
            return
        method = self.scope.get("method", "-") if self.scope else "-"
        address = self.client[0] if self.client else ""
        context = Context.of(method, self.headers or (), address)
        date = self.server_state.default_headers
        self.transport.write(
            self.rejection.refusal(problem(kind, detail), context, date, close=True)
        )
        self.transport.close()
