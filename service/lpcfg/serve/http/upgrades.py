"""uvicorn's HTTP protocol for clients that would rather speak another one.

Java's HttpClient and `curl --http2` send `Upgrade: h2c` with their first request. A server may
ignore that (RFC 9110, 7.8) and answer the request as it is. uvicorn's parser takes all that comes
behind such a head for another protocol, so that the request loses its body. Here the parser gets
the same head again without the header `Upgrade`, and reads on behind it.
"""

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_INVALID = "Invalid HTTP request received."


class WithoutUpgrades(HttpToolsProtocol):
    """One connection that speaks HTTP/1.1 whatever else its client offers."""

    _plain_head: bytes | None = None
    """The present head without its wish for another protocol, until that is read."""

    def data_received(self, data: bytes) -> None:
        """Read bytes, and every head among them that asks for another protocol once more."""
        self._unset_keepalive_if_required()
        left = memoryview(data)
        try:
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
        except httptools.HttpParserError:
            self.logger.warning(_INVALID)
            self.send_400_response(_INVALID)

    def on_headers_complete(self) -> None:
        """Begin the request, or keep its head to be read again."""
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":  # llhttp takes it for an upgrade
            self._plain_head = self._without_upgrade(method)
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End the request, unless its head is to be read again."""
        if self._plain_head is None:
            super().on_message_complete()

    def _without_upgrade(self, method: bytes) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
        lines += [b"%s: %s" % one for one in self.headers if one[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])
