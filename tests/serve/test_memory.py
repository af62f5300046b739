"""Memory that is free is given back to the system."""

import threading
import time

import pytest

from lpcfg.serve import state
from tests.serve.conftest import Serve


def test_free_memory_is_given_back_once_after_work(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = threading.Event()
    times: list[float] = []

    def give_back() -> None:
        times.append(time.monotonic())
        given.set()

    monkeypatch.setattr(state, "_LOOK", 0.01)
    monkeypatch.setattr(state, "give_back", give_back)
    with serve() as client:
        time.sleep(0.1)  # ten looks
        assert not times  # probes are no work
        assert client.post("/v1/parse", json={"text": "The cat sleeps."}).status_code == 200
        assert given.wait(10)
        time.sleep(0.1)
        assert len(times) == 1
