"""Jobs: kept on disk, answered in order whatever happens to processes, removed in time."""

import errno
import hashlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving import Process
from fastapi.testclient import TestClient

from lpcfg import Client, ServiceError
from lpcfg.serve.http.problems import Refused
from lpcfg.serve.jobs import ANSWERS, Facts, Job, Jobs, Progress
from tests.serve.conftest import Serve, made_up


def key_line(name: str, quota: str = "") -> str:
    """Write a line of a file of keys, whose key is the name."""
    return f"{name} {hashlib.sha256(name.encode()).hexdigest()} {quota}\n"


LINES = b'"The dog slept."\nnonsense\n\n{"id": 7, "tokens": ["A", "cat", "ran"]}'


def until(true: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := true()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def done(client: TestClient | Process, job: dict[str, Any]) -> dict[str, Any]:
    def look() -> Any:
        told = answered(client, "GET", f"/v1/jobs/{job['id']}")
        return told if told["status"] == "done" else None

    found: dict[str, Any] = until(look)
    return found


def answered(client: TestClient | Process, method: str, path: str, body: bytes = b"") -> Any:
    if isinstance(client, Process):
        return client.ask(method, path, body).json()
    return client.request(method, path, content=body).json()


def test_a_job_has_the_answers_of_a_batch(serve: Serve, tmp_path: Path) -> None:
    with serve(jobs_dir=tmp_path) as client:
        begun = client.post("/v1/jobs?k=2", content=LINES)
        assert begun.status_code == 202
        job = begun.json()
        assert begun.headers["location"] == path_of(job)
        assert (job["lines"], job["status"]) == (4, "waiting")
        told = done(client, job)
        assert (told["answered"], told["problems"]) == (4, 2)
        batch = client.post("/v1/batch?k=2", content=LINES)
        answers = client.get(f"{path_of(job)}/answers")
        assert answers.content == batch.content
        assert answers.headers["content-type"] == batch.headers["content-type"]
        rest = client.get(f"{path_of(job)}/answers?after=3")
        assert rest.content == batch.content.splitlines(keepends=True)[3]
        assert 'lpcfg_sentences_total{endpoint="/v1/jobs"} 2.0' in client.get("/metrics").text
        assert client.delete(path_of(job)).status_code == 204
        assert client.get(path_of(job)).status_code == 404
        assert not list(tmp_path.glob("[!.]*"))


def path_of(job: dict[str, Any]) -> str:
    return f"/v1/jobs/{job['id']}"


def test_an_empty_job_is_done_at_once(serve: Serve, tmp_path: Path) -> None:
    with serve(jobs_dir=tmp_path) as client:
        told = done(client, client.post("/v1/jobs", content=b"").json())
        assert (told["lines"], told["answered"]) == (0, 0)
        assert client.get(f"{path_of(told)}/answers").content == b""


def many(number: int) -> bytes:
    sentences = made_up(number, range(5, 25), seed=7)
    return b"".join(json.dumps({"tokens": one}).encode() + b"\n" for one in sentences)


def check_whole(process: Process, job: dict[str, Any], body: bytes) -> None:
    told = done(process, job)
    assert told["answered"] == told["lines"] == body.count(b"\n")
    found = process.ask("GET", f"{path_of(job)}/answers").body
    assert found == process.ask("POST", "/v1/batch", body).body


def some_answers(folder: Path, job: dict[str, Any]) -> int:
    path = folder / job["id"] / ANSWERS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_job_goes_on_after_its_process_was_killed(store: Path, tmp_path: Path) -> None:
    body = many(1500)
    with Process("small", store, jobs_dir=tmp_path, cache_bytes=0) as process:
        job = process.ready().ask("POST", "/v1/jobs", body).json()
        until(lambda: some_answers(tmp_path, job))
        process.child.kill()
    before = some_answers(tmp_path, job)
    assert 0 < before < 1500
    with open(tmp_path / job["id"] / ANSWERS, "ab") as answers:
        answers.write(b'{"line": 9, "mod')  # a write that was torn
    with Process("small", store, jobs_dir=tmp_path, cache_bytes=0) as process:
        check_whole(process.ready(), job, body)


def test_a_rollout_hands_a_job_to_another_process(store: Path, tmp_path: Path) -> None:
    body = many(6000)  # which the old process cannot answer while it ends
    with ExitStack() as stack:
        old, new = (
            stack.enter_context(Process("small", store, jobs_dir=tmp_path, cache_bytes=0))
            for _ in range(2)
        )
        job = old.ready().ask("POST", "/v1/jobs", body).json()
        new.ready()
        until(lambda: some_answers(tmp_path, job))
        assert old.terminate() == 0
        assert some_answers(tmp_path, job) < 6000
        check_whole(new, job, body)


def test_a_body_that_breaks_off_leaves_no_job(store: Path, tmp_path: Path) -> None:
    with Process("small", store, jobs_dir=tmp_path) as process:
        process.ready()
        with socket.create_connection(("127.0.0.1", process.port)) as client:
            client.sendall(b"POST /v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 99\r\n\r\n")
            client.sendall(b'"It slept."\n')
            until(lambda: list(tmp_path.glob(".new-*")))
        until(lambda: not list(tmp_path.glob(".new-*")))
        assert not list(tmp_path.glob("[!.]*"))
        process.child.send_signal(signal.SIGTERM)


def test_the_same_idempotency_key_names_the_same_job(serve: Serve, tmp_path: Path) -> None:
    with serve(jobs_dir=tmp_path) as client:
        first, second, other = (
            client.post("/v1/jobs", content=LINES, headers={"idempotency-key": key}).json()["id"]
            for key in ("a", "a", "b")
        )
        assert first == second != other


def test_jobs_have_limits(serve: Serve, tmp_path: Path) -> None:
    with serve(jobs_dir=tmp_path, jobs=3, job_bytes=100) as client:
        for size in (101, None):
            body = b"x" * 101
            content = body if size else iter([body])
            told = client.post("/v1/jobs", content=content).json()
            assert (told["status"], told["limit"]) == (413, 100)
        assert client.post("/v1/jobs?k=99", content=LINES).json()["at"] == "#query/k"
        assert client.post("/v1/jobs?model=x", content=LINES).json()["at"] == "#query/model"
        made = [client.post("/v1/jobs", content=LINES).status_code for _ in range(3)]
        assert made == [202, 202, 503]


def test_a_full_disk_refuses_jobs(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with serve(jobs_dir=tmp_path) as client:
        monkeypatch.setattr("lpcfg.serve.jobs.Draft.write", full)
        answer = client.post("/v1/jobs", content=LINES)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "60")
        assert "No space left" in answer.json()["detail"]
        assert not list(tmp_path.glob(".new-*"))


def test_jobs_of_other_processes_and_of_lost_keys_keep_none_waiting(
    serve: Serve, tmp_path: Path
) -> None:
    home = Jobs(tmp_path, 9, 1.0)
    with ExitStack() as stack:
        for name in ("a", "b"):
            stack.enter_context(kept(home, name).locked())
        for name in ("c", "d"):
            kept(home, name, options={**OPTIONS, "model": "gone"})
        with serve(jobs_dir=tmp_path) as client:
            done(client, client.post("/v1/jobs", content=LINES).json())
            assert client.get("/v1/jobs/a").json()["status"] == "waiting"


def test_a_service_without_a_folder_keeps_no_jobs(client: TestClient) -> None:
    for method, path in (("POST", "/v1/jobs"), ("GET", "/v1/jobs/a"), ("DELETE", "/v1/jobs/a")):
        answer = client.request(method, path, content=LINES if method == "POST" else None)
        assert answer.status_code == 404
        assert "LPCFG_JOBS_DIR" in answer.json()["detail"]


def test_only_the_owner_of_the_key_sees_a_job(serve: Serve, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(key_line("ann") + key_line("bob"))
    with serve(jobs_dir=tmp_path / "jobs", api_keys_file=keys) as client:
        ann, bob = ({"x-api-key": name} for name in ("ann", "bob"))
        job = client.post("/v1/jobs", content=LINES, headers=ann).json()
        for path in (path_of(job), f"{path_of(job)}/answers"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=bob).status_code == 404
            assert client.get(path, headers=ann).status_code == 200
        assert client.delete(path_of(job), headers=bob).status_code == 404


def test_a_job_waits_for_a_used_up_quota(serve: Serve, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(key_line("ann", "600"))  # ten tokens a second
    with serve(jobs_dir=tmp_path / "jobs", api_keys_file=keys) as client:
        ann = {"x-api-key": "ann"}
        client.post("/v1/parse", json={"sentences": [{"tokens": ["a"] * 200}] * 3}, headers=ann)
        job = client.post("/v1/jobs", content=b'"The dog slept."\n' * 5, headers=ann).json()
        told = until(
            lambda: (
                found
                if (found := client.get(path_of(job), headers=ann).json())["status"] == "done"
                else None
            )
        )
        assert (told["answered"], told["problems"]) == (5, 0)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path, 4, 1.0)


OPTIONS = {"model": None, "k": 1, "objective": "max-rule", "rescore": True}


def kept(
    jobs: Jobs,
    name: str,
    body: bytes = b'"It slept."',
    *,
    options: dict[str, Any] = OPTIONS,
    age: float = 0.0,
) -> Job:
    """Leave a job, so many seconds ago."""
    draft = jobs.draft()
    draft.write(body)
    facts = Facts(name, "me", None, time.time() - age, draft.lines, options)
    return draft.finish(facts, jobs.home)


@pytest.mark.parametrize(
    "progress", [None, Progress(1), Progress(1, 0, done=True), Progress(1, 0, failed=True)]
)
def test_jobs_expire_after_their_arrival_however_far_they_are(
    jobs: Jobs, progress: Progress | None
) -> None:
    old, fresh = kept(jobs, "old", age=3601), kept(jobs, "fresh", age=3500)
    for job in (old, fresh):
        if progress is not None:
            job.save(progress)
    assert jobs.expires(fresh) == fresh.facts.created + 3600
    jobs.sweep()
    assert [job.facts.id for job in jobs] == ["fresh"]
    assert fresh.facts.lines == 1


def test_a_sweep_leaves_a_body_that_is_being_received(jobs: Jobs) -> None:
    draft = jobs.draft()
    draft.open()
    jobs.sweep()
    assert len(list(jobs.home.glob(".*"))) == 1
    draft.drop()
    assert not list(jobs.home.glob(".*"))


def test_a_client_may_keep_half_of_all_jobs(jobs: Jobs) -> None:
    kept(jobs, "a")
    jobs.check("me")
    kept(jobs, "b")
    with pytest.raises(Refused, match="got 2 and 2"):
        jobs.check("me")
    jobs.check("you")


def test_a_job_is_worked_on_once(jobs: Jobs) -> None:
    job = kept(jobs, "a")
    with job.locked() as first, job.locked() as second:
        assert first
        assert not second
    with job.locked() as again:
        assert again


def test_ids_are_no_paths(jobs: Jobs) -> None:
    kept(jobs, "a")
    for name in ("../a", ".", "", "b", "a/lock"):
        assert jobs.find(name) is None


def test_the_client_leaves_jobs_and_reads_answers(store: Path, tmp_path: Path) -> None:
    with Process("small", store, jobs_dir=tmp_path) as process:
        process.ready()
        with Client(f"http://127.0.0.1:{process.port}") as client:
            job = client.submit(["The dog slept.", ["A", "cat"], ""], k=2)
            until(lambda: client.job(job.id).status == "done")
            found = list(client.job_answers(job.id))
            assert [one.line for one in found] == [1, 2, 3]
            assert found == list(client.batch(["The dog slept.", ["A", "cat"], ""], k=2))
            assert [one.line for one in client.job_answers(job.id, after=2)] == [3]
            client.delete_job(job.id)
            with pytest.raises(ServiceError, match="id of a job"):
                client.job(job.id)
