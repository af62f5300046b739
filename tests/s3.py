"""A server that speaks S3, in this process, for whoever imports `bucket` as a fixture."""

from collections.abc import Iterator
from itertools import count

import fsspec
import pytest
from moto.server import ThreadedMotoServer

_NUMBERS = count()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of an empty bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }.items():
        monkeypatch.setenv(name, value)
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    name = f"bucket{next(_NUMBERS)}"  # servers share their buckets
    system.mkdir(name)
    type(system).clear_instance_cache()
    yield f"s3://{name}"
    type(system).clear_instance_cache()
    server.stop()
