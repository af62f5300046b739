"""A server that speaks S3, in this process, for whoever imports `bucket` as a fixture."""

import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import fsspec
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

_NUMBERS = count()


class Flaky:
    """Fails some requests, each in one of several ways; counts these.

    A `lost` one is done, but its answer never comes.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.failed: Counter[str] = Counter()
        self._chance = random.Random(7)
        self._serve: Any = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if self._chance.random() >= self.share:
            answer: Iterable[bytes] = self._serve(environ, start)
            return answer
        way = self._chance.choice(("500 Internal Server Error", "503 Slow Down", "reset", "lost"))
        self.failed[way] += 1
        if way == "lost":
            b"".join(self._serve(environ, lambda *_: None))
        if way in ("lost", "reset"):
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError
        start(way, [("Content-Length", "0")])
        return [b""]


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Flaky]]:
    """Serve an empty bucket. Yield its URL, and what can make requests fail."""
    flaky = Flaky(0)
    server = make_server("127.0.0.1", 0, flaky, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
    }.items():
        monkeypatch.setenv(name, value)
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    name = f"bucket{next(_NUMBERS)}"  # servers share their buckets
    system.mkdir(name)
    type(system).clear_instance_cache()
    yield f"s3://{name}", flaky
    type(system).clear_instance_cache()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of an empty bucket."""
    with serving(monkeypatch) as (url, _):
        yield url


@pytest.fixture
def flaky_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Flaky]]:
    """Return the URL of an empty bucket, and what can make requests fail."""
    with serving(monkeypatch) as served:
        yield served
