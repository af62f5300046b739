"""The end of the service, which loses no request."""

import socket

import pytest

from lpcfg.serve.edge.server import _begin_no_more


def test_no_connection_begins_but_those_made_still_send() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with socket.create_connection(address, timeout=5) as early:
            _begin_no_more(listening)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.3)
            accepted, _ = listening.accept()
            with accepted:
                sent = b"x" * 50_000  # more than the first packet's flags and headers
                early.sendall(sent)
                accepted.settimeout(5)
                received = b""
                while len(received) < len(sent):
                    received += accepted.recv(1 << 16)
                assert received == sent
