"""A service with models that need not be loaded, and with no room."""

from pathlib import Path

import pytest

from lpcfg.serve.app import create_app
from lpcfg.serve.scheduling.admission import Priority
from lpcfg.serve.served import Models
from lpcfg.serve.state import Service
from lpcfg.settings import Settings


@pytest.fixture
def full(store: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Make a service whose queue is full."""
    monkeypatch.setattr(Models, "ready", True)
    app = create_app(Settings(model="small", model_store=str(store), queue=0, threads=1))
    service: Service = app.state.service
    service.admission.enter(Priority.SINGLE, "192.0.2.1", 1.0)
    service.admission.enter(Priority.SINGLE, "192.0.2.1", 1.0)
    return service
