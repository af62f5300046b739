"""The server process: uvicorn with deadlines for slow clients, and an end that loses no request."""

import asyncio
import ctypes
import errno
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import structlog
import uvicorn
from uvicorn.config import Config

from lpcfg.base.errors import SettingsError
from lpcfg.serve.app import create_app
from lpcfg.serve.edge.connection import protocol
from lpcfg.serve.edge.rejection import EarlyRejection
from lpcfg.serve.http import logs
from lpcfg.serve.state import Service
from lpcfg.settings import Settings
from lpcfg.store.versions import Reference

_ATTACH_FILTER = 26  # Linux: a socket's filter of packets
_NO_SYN = (
    (0x30, 0, 0, 13),  # load the byte of flags of TCP's header
    (0x45, 0, 1, 2),  # if SYN is set,
    (0x06, 0, 0, 0),  # drop the packet,
    (0x06, 0, 0, 0xFFFFFFFF),  # else keep it whole
)
_HANDSHAKES = 0.05  # seconds for connections that are being made when the service ends

_log = structlog.get_logger("lpcfg.web")


def serve(
    settings: Settings, *, on_start: Callable[[Callable[[], None]], None] = lambda _: None
) -> None:
    """Serve until told to end. `on_start` gets a function that ends the service gently.

    Any thread may call that function. Raise if a model is missing or changed, or if the address
    cannot be used.
    """
    logs.configure(settings.log_level)
    app = create_app(settings)
    service: Service = app.state.service
    config = Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol(settings, EarlyRejection(service)),
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # http/context.py reads them
        timeout_keep_alive=settings.keep_alive_seconds,  # type: ignore[arg-type]  # any number
        timeout_graceful_shutdown=int(settings.timeout_seconds) + 1,
    )
    listening = _listening(settings.host, settings.port, config.backlog)
    server = Server(config, service)
    service.on_failure = server.give_up
    host, port = listening.getsockname()[:2]
    _log.info("listening", host=host, port=port)
    address = f"[{host}]" if ":" in host else host
    print("loading the model; the first start compiles the kernels as well", flush=True)
    service.on_ready = lambda: print(f"ready: http://{address}:{port}/", flush=True)
    on_start(server.interrupt)
    server.heed_hangups()
    try:
        server.run([listening])
    except SystemExit:  # uvicorn's own end of a start that failed
        if service.failure is None:
            raise
    if service.models.busy:
        server.end_at_once()
    if service.failure is not None:
        raise service.failure


_CURES = {
    errno.EADDRINUSE: "end what listens there, or name another port (0 takes any that is free)",
    errno.EACCES: "name a port from 1024 up, or run this as who may listen there",
}
_NO_ADDRESS = "name an address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for others too"


def _listening(host: str, port: int, backlog: int) -> socket.socket:
    v6 = ":" in host
    try:
        return socket.create_server(
            (host, port),
            family=socket.AF_INET6 if v6 else socket.AF_INET,
            backlog=backlog,
            dualstack_ipv6=v6 and socket.has_dualstack_ipv6(),
        )
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        # no number, or one of the resolver's, which are negative: there is no such name
        got = os.strerror(number) if number > 0 else "Unknown name"
        raise SettingsError(
            f"expected a free address to listen on, got `{got}` for host {host} and port {port}: "
            f"{_CURES.get(number, _NO_ADDRESS)}"
        ) from error


def check(settings: Settings) -> list[Reference]:
    """Load, verify and warm every model, as `serve` does, and return what would be served.

    Raise if something cannot be served; no older version stands in for a newest one.
    """
    logs.configure(settings.log_level)
    service = Service.of(settings)
    asyncio.run(service.load(fall_back=False))
    return service.models.references


class Server(uvicorn.Server):
    """A server that ends in three steps: report not ready, stop listening, answer what remains."""

    def __init__(self, config: Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._signal: int | None = None
        self._reload_wanted = False
        self._reloading: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signal = sig
        if sig == signal.SIGTERM:  # a normal end: uvicorn would report death by signal
            self.should_exit = True
        else:
            super().handle_exit(sig, frame)

    def interrupt(self) -> None:
        """End as after Ctrl-C: answer the requests that have already come."""
        self._signal = signal.SIGINT
        self.should_exit = True

    def heed_hangups(self) -> None:
        """Reload the models at SIGHUP or, where a terminal's end sends it, end as at SIGTERM.

        Under `nohup`, which ignores SIGHUP, nothing changes.
        """
        in_main = threading.current_thread() is threading.main_thread()  # only there it is possible
        if in_main and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            at_terminal = sys.stdin.isatty()
            signal.signal(signal.SIGHUP, self._hang_up if at_terminal else self._reload)

    def _hang_up(self, sig: int, frame: FrameType | None) -> None:
        del sig
        self.handle_exit(signal.SIGTERM, frame)

    def _reload(self, sig: int, frame: FrameType | None) -> None:
        del sig, frame
        self._reload_wanted = True

    async def on_tick(self, counter: int) -> bool:
        """Begin a reload that was asked for. uvicorn calls this ten times a second."""
        if self._reload_wanted and self._service.models.ready:
            self._reload_wanted = False
            self._reloading = asyncio.create_task(self._service.models.reload_all())
        return await super().on_tick(counter)

    def end_at_once(self) -> NoReturn:
        """End the process although a model is being loaded, which nothing can interrupt.

        A first load compiles for up to a minute, and the interpreter's own end would wait for it.
        """
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0 if self._signal == signal.SIGTERM else 130)

    def give_up(self) -> None:
        """End without waiting, because nothing is being served."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        settings = self._service.settings
        listens = settings.drain_seconds if self._signal == signal.SIGTERM else 0.0
        # now /ready fails, and answers close connections
        self._service.drain(listens + settings.timeout_seconds)
        await asyncio.sleep(listens)
        # Closing a listening socket resets connections that are not accepted yet. So no more are
        # begun, those being made are waited for, and those that wait are accepted.
        for listening in sockets or []:
            _begin_no_more(listening)
        await asyncio.sleep(_HANDSHAKES)
        waiting = [one for listening in sockets or [] for one in _accepted(listening)]
        for server in self.servers:
            server.close()
        for one in waiting:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, one)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made


def _begin_no_more(listening: socket.socket) -> None:
    """Let the kernel drop packets that begin a connection. Their clients try again by themselves.

    Without it, a connection that is made between the last `accept` and the end of the socket is
    reset, and the request on it is lost: one in 25 ends, while 12 clients connect without a pause.
    No proxy may send that request again if it is a POST. A backlog of 0 is not enough: a client
    that does not fit into it takes itself for connected, sends its request, and is reset. Systems
    other than Linux have no such filter.
    """
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in _NO_SYN))
    program = struct.pack("HP", len(_NO_SYN), ctypes.addressof(code))
    with suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


def _accepted(listening: socket.socket) -> Iterator[socket.socket]:
    """Yield the connections that the kernel has made and that are not accepted yet."""
    with suppress(BlockingIOError):
        while True:
            connection, _ = listening.accept()
            connection.setblocking(False)
            yield connection
