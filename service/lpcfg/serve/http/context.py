"""Keep what is known of a request, from its head to the end of its answer: names, times, client.

A client is the owner of a key, or the address that a request comes from.
"""

import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Protocol

from lpcfg.base.errors import SettingsError
from lpcfg.serve.http.keys import Key
from lpcfg.serve.scheduling.phases import Phase

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
_NAMES = random.Random()
"""Makes names that need not be secret. The system's generator would give up the interpreter's lock,
and threads that parse take it for up to 5 ms."""
_NETWORK = 64  # bits of an IPv6 address that a provider gives one client
_REQUEST_ID = re.compile(r"[!-~]{1,128}")
MEMBER = "lpcfg.context"
"""The member of an ASGI scope that holds the context."""
CONNECTION = "lpcfg.connection"
"""The member that holds the connection, where the server gives it."""


class Connection(Protocol):
    """The connection of a request."""

    def is_gone(self) -> bool:
        """Return True if the client has reset the connection, even if it is not being read from."""

    def when_gone(self, tell: Callable[[], None] | None) -> None:
        """Call this when the client disconnects, at once if it has; None: nobody wants to know."""

    def close_after_answer(self) -> None:
        """Close the connection once the present answer has ended."""


@dataclass(slots=True)
class Context:
    """One request: its names for logs and traces, and when it began."""

    method: str
    request_id: str
    trace_id: str
    flags: str
    """Flags of the trace (W3C trace context)."""
    parent: str = ""
    """The id of the span that the request came from, if it has one."""
    address: str = ""
    """The address that the request comes from."""
    client: str = ""
    """The client: the key's name, or else the address."""
    endpoint: str = "other"
    key: str | None = None
    """The name of the key, if there is one."""
    owner: Key | None = None
    """The key itself, if keys are asked for, with what is left of its quota."""
    has_entered: bool = False
    """True once it has shown its key, and there was room for it."""
    model: str | None = None
    """The hash of the model that answers."""
    sentences: int = 0
    tokens: int = 0
    charged: int = 0
    """Tokens that the key was charged with, as an estimate."""
    waited: float = 0.0
    """Seconds until a thread took the work."""
    worked: float = 0.0
    """Seconds that threads worked."""
    began: float = field(default_factory=time.perf_counter)
    span_id: str = field(default_factory=lambda: _hex(8))
    span: Any = None
    """The span of the request, where traces are made."""
    phases: list[Phase] | None = None
    """The phases of its work, where somebody wants to know."""

    @classmethod
    def of(
        cls, method: str, headers: Iterable[tuple[bytes, bytes]], address: str = ""
    ) -> "Context":
        """Begin the context of a request with these headers from this address."""
        asked = trace = ""
        for name, value in headers:
            if name == b"x-request-id":
                asked = value.decode("latin-1")
            elif name == b"traceparent":
                trace = value.decode("latin-1")
        request_id = asked if _REQUEST_ID.fullmatch(asked) else _hex(16)
        match = _TRACEPARENT.fullmatch(trace)
        trace_id, parent, flags = match.groups() if match else (_hex(16), "", "00")
        return cls(method, request_id, trace_id, flags, parent, address, group(address))

    def seconds(self) -> float:
        """Return the time since the request began."""
        return time.perf_counter() - self.began

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that name the request in its answer."""
        trace = self.traceparent().encode()
        return [(b"x-request-id", self.request_id.encode()), (b"traceparent", trace)]

    def traceparent(self) -> str:
        """Name the trace and the span of the request, for what comes of it."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def context_of(scope: Any) -> Context:
    """Return the context of the request with this ASGI scope."""
    context: Context = scope[MEMBER]
    return context


def connection_of(scope: Any) -> Connection | None:
    """Return the connection of the request with this ASGI scope, if the server gives it."""
    connection: Connection | None = scope.get(CONNECTION)
    return connection


def _hex(size: int) -> str:
    return _NAMES.randbytes(size).hex()


# Addresses ----------------------------------------------------------------------------------------


class Proxies:
    """The proxies in front of the service, whose X-Forwarded-For is believed."""

    def __init__(self, networks: Iterable[str]) -> None:
        try:
            self._networks = [ip_network(one) for one in networks]
        except ValueError as error:
            raise SettingsError(
                f"expected addresses or networks of proxies, got {error}: write them like "
                "10.0.0.0/8 in LPCFG_PROXIES"
            ) from error

    def address(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the address of a client: that of the peer, or what proxies say of it."""
        if not self._networks or not self._has(peer):
            return peer
        told = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
        for one in reversed(",".join(told).split(",")):
            host = one.strip()
            if host and not self._has(host):
                return host if _is_address(host) else peer
        return peer

    def _has(self, host: str) -> bool:
        return _is_address(host) and any(ip_address(host) in one for one in self._networks)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def group(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or a network of IPv6 addresses."""
    if not _is_address(address):
        return address
    found = ip_address(address)
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), _NETWORK), strict=False))
