"""The models of a service: how it starts with them, and how they are replaced."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving import Process
from fastapi.testclient import TestClient

from lpcfg.base.errors import StoreError
from lpcfg.cli import main
from lpcfg.kinds.constituency.kind import Constituency
from lpcfg.serve import served
from lpcfg.serve.app import create_app
from lpcfg.settings import Settings
from lpcfg.store.files import Bundle
from lpcfg.store.versions import load, publish
from tests.serve.conftest import wait_until_ready


def bundle_of(store: Path) -> Bundle:
    stored = load("small@1", store)
    facts = stored.manifest["facts"]
    assert isinstance(facts, Mapping)
    return Bundle(dict(stored.tensors), stored.grammar, facts, stored.card)


def unusable(bundle: Bundle) -> Bundle:
    """Make a bundle that is published and verified like any other, and would crash a kernel."""
    start = bundle.tensors["lexicon.word_start"][:40].copy()
    return replace(bundle, tensors={**bundle.tensors, "lexicon.word_start": start})


SAID = "/small/1/tensors.safetensors `lexicon.word_start`: expected a tensor of I32 and "


@pytest.fixture
def broken(store: Path, tmp_path: Path) -> Path:
    """Make a store whose only version is sealed and unusable."""
    publish(tmp_path, "small", unusable(bundle_of(store)))
    return tmp_path


def test_a_service_with_an_unusable_model_ends_with_the_reason(broken: Path) -> None:
    command = [sys.executable, "-m", "lpcfg", "serve", "--model", "small", "--store", str(broken)]
    run = subprocess.run(
        [*command, "--port", "0"], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 1
    assert f"\nlpcfg: error: {broken}{SAID}" in run.stderr
    assert '"event": "not ready"' in run.stderr


def test_verify_and_check_refuse_what_cannot_be_used(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["models", "verify", "small"], ["serve", "--check", "--model", "small"]):
        assert main([*command, "--store", str(broken)]) == 1
        assert f"lpcfg: error: {broken}{SAID}" in capsys.readouterr().err


def test_check_prints_what_would_be_served(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--check", "--model", "small", "--store", str(store)]) == 0
    found = load("small", store).reference
    beside = load("en-dep", store).reference  # of the package
    assert capsys.readouterr().out == f"small@1   {found.hash}\nen-dep@1  {beside.hash}\n"


ADMIN = {"Authorization": "Bearer secret"}


@pytest.fixture
def own(store: Path, tmp_path: Path) -> Path:
    """Make a store of one's own with `small@1`, and administrators' keys beside it."""
    shutil.copytree(store / "small", tmp_path / "own" / "small")
    hashed = hashlib.sha256(b"secret").hexdigest()
    (tmp_path / "admins").write_text(f"me {hashed}\n", encoding="utf-8")
    return tmp_path / "own"


def settings_of(own: Path, model: str) -> Settings:
    return Settings(model=model, model_store=str(own), admin_keys_file=own.parent / "admins")


@pytest.fixture
def serving(own: Path) -> Iterator[Callable[[str], TestClient]]:
    """Start the service in this process, with a model of the own store."""
    running: list[TestClient] = []

    def start(model: str) -> TestClient:
        client = TestClient(create_app(settings_of(own, model)), raise_server_exceptions=False)
        running.append(client)
        client.__enter__()
        wait_until_ready(client)
        return client

    yield start
    for client in running:
        client.__exit__(None, None, None)


def reloaded(client: TestClient, version: object = None) -> tuple[int, Any]:
    asked = {} if version is None else {"version": version}
    answer = client.post("/v1/models/small/reload", params=asked, headers=ADMIN)  # type: ignore[arg-type]
    return answer.status_code, answer.json()


def served_version(client: TestClient) -> object:
    answer = client.post("/v1/parse", json={"text": "The dog slept."})
    assert answer.status_code == 200
    return answer.json()["model"]["version"]


def test_a_version_that_was_asked_for_stays_until_another_is(
    own: Path, serving: Callable[[str], TestClient]
) -> None:
    publish(own, "small", bundle_of(own))
    client = serving("small@1")
    assert [reloaded(client)[1]["version"], served_version(client)] == [1, 1]
    assert reloaded(client, "newest")[1]["version"] == 2
    publish(own, "small", bundle_of(own))
    assert [reloaded(client)[1]["version"], served_version(client)] == [3, 3]
    assert reloaded(client, 2)[1]["version"] == 2  # back, and there it stays
    assert [reloaded(client)[1]["version"], served_version(client)] == [2, 2]
    status, told = reloaded(client, 9)
    assert (status, "expected a model `small@9`" in told["detail"]) == (409, True)
    assert reloaded(client, "oldest")[0] == 422
    assert served_version(client) == 2


def test_a_refused_reload_says_why_and_the_old_version_stays(
    own: Path, serving: Callable[[str], TestClient]
) -> None:
    client = serving("small")
    publish(own, "small", unusable(bundle_of(own)))
    status, told = reloaded(client)
    assert status == 409
    assert SAID.replace("/1/", "/2/") in told["detail"]
    assert served_version(client) == 1
    assert 'lpcfg_model_refused{name="small",version="2"} 1.0' in client.get("/metrics").text
    assert reloaded(client, 1)[0] == 200
    assert "lpcfg_model_refused{" not in client.get("/metrics").text


def test_a_start_falls_back_to_the_last_version_that_can_be_used(
    own: Path, serving: Callable[[str], TestClient], capsys: pytest.CaptureFixture[str]
) -> None:
    publish(own, "small", unusable(bundle_of(own)))
    torn = publish(own, "small", bundle_of(own))
    manifest = own / "small" / str(torn.version) / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_text("{}", encoding="utf-8")
    client = serving("small")
    assert served_version(client) == 1
    assert 'lpcfg_model_refused{name="small",version="3"} 1.0' in client.get("/metrics").text
    assert "".join(capsys.readouterr()).count("model refused") == 2
    assert main(["serve", "--check", "--model", "small", "--store", str(own)]) == 1
    assert "small/3/manifest.json: expected the seal" in capsys.readouterr().err


def test_no_other_version_stands_in_for_a_pinned_one(own: Path) -> None:
    publish(own, "small", unusable(bundle_of(own)))
    slot = served.Slot.of("small@2", str(own))
    with pytest.raises(StoreError, match="word_start"):
        slot.start()
    assert slot.model is None


def test_concurrent_reloads_load_a_new_version_once(
    own: Path, serving: Callable[[str], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = serving("small")
    publish(own, "small", bundle_of(own))
    loads, together, most = [], [0], [0]
    first = Constituency.warm

    def counted(kind: Constituency, parser: Any) -> None:
        together[0] += 1
        most[0] = max(most[0], together[0])
        loads.append(threading.current_thread().name)
        first(kind, parser)
        together[0] -= 1

    monkeypatch.setattr(Constituency, "warm", counted)
    with ThreadPoolExecutor(12) as threads:
        told = [one.result() for one in [threads.submit(reloaded, client) for _ in range(12)]]
    assert {status for status, _ in told} == {200}
    assert {one["version"] for _, one in told} == {2}
    assert (len(loads), most) == (1, [1])


def test_while_a_service_starts_its_models_are_not_ready(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    first = Constituency.warm

    def waiting(kind: Constituency, parser: Any) -> None:
        go_on.wait(30)
        first(kind, parser)

    monkeypatch.setattr(Constituency, "warm", waiting)
    paths = ("/v1/models", "/v1/models/small", "/v2/models/small/ready", "/v2/health/ready")
    with TestClient(create_app(settings_of(own, "small"))) as client:
        for path in paths:
            answer = client.get(path)
            assert (answer.status_code, answer.json()["type"]) == (503, "/docs#problem-starting")
            assert "retry-after" in answer.headers
        assert client.get("/v2/models/other/ready").status_code == 404
        go_on.set()
        wait_until_ready(client)
        assert {client.get(path).status_code for path in paths} == {200}


def test_hangups_reload_models_and_lose_nothing(own: Path) -> None:
    with Process("small", own) as process:
        process.ready()
        publish(own, "small", bundle_of(own))
        process.child.send_signal(signal.SIGHUP)
        end = time.monotonic() + 30
        while process.ask("GET", "/v1/models").json()["models"][0]["version"] != 2:
            assert time.monotonic() < end, "".join(process.log)
            time.sleep(0.05)
        assert process.terminate() == 0
    assert any('"event": "model"' in line and "small@2" in line for line in process.log)


SLOW_START = """
import sys, time
from lpcfg.cli import main
from lpcfg.kinds.constituency.kind import Constituency
Constituency.warm = lambda kind, parser: time.sleep(50)
sys.exit(main())
"""


def test_a_signal_in_a_cold_start_ends_it_at_once(own: Path) -> None:
    command = [sys.executable, "-c", SLOW_START, "serve", "--model", "small", "--store", str(own)]
    with subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if "listening" in line:
                break
        time.sleep(1)
        asked = time.monotonic()
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=30) == 0
        # half a second of draining, and time for a busy machine; not the load's 50
        assert time.monotonic() - asked < 10


NO_THREADS = """
import sys, threading
from lpcfg.cli import main
start, begun = threading.Thread.start, []
def refuse(self):
    if self.name.startswith("parse"):
        begun.append(self)
        if len(begun) > 2:
            raise RuntimeError("can't start new thread")
    start(self)
threading.Thread.start = refuse
sys.exit(main())
"""


def test_threads_that_cannot_start_end_the_command_with_the_reason(own: Path) -> None:
    command = [sys.executable, "-c", NO_THREADS, "serve", "--model", "small", "--store", str(own)]
    environment = {"LPCFG_THREADS": "4", "LPCFG_PORT": "0"}
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    assert run.returncode == 1
    told = "lpcfg: error: expected to start 5 threads, got `can't start new thread`: set LPCFG_TH"
    assert told in run.stderr
