"""Work on jobs: chunks bounded in bytes, attempts that are counted, jobs that are set aside."""

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import pytest

from lpcfg.base.errors import LpcfgError
from lpcfg.protocol.schemas import JobAnswer
from lpcfg.serve.jobs import Job, Jobs
from lpcfg.serve.routes import runner
from lpcfg.serve.routes.lines import Lines
from lpcfg.serve.routes.runner import Chunk, read_chunk
from tests.serve.conftest import Serve
from tests.serve.test_jobs import OPTIONS, done, kept, until

KIB = 1 << 10


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let services of this process look for jobs often, so that tests are short."""
    monkeypatch.setattr(runner, "_LOOK", 0.02)
    monkeypatch.setattr(runner, "_BUSY", 0.02)


def chunks(lines: list[bytes], most: int = 256 * KIB) -> list[Chunk]:
    """Hand out all lines, none of which is read beyond a MiB."""
    given, found, number = BufferedReader(BytesIO(b"\n".join(lines))), [], 1
    while chunk := read_chunk(given, number, KIB * KIB, most):
        found.append(chunk)
        number += len(chunk)
    return found


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        ([b'"It."'] * 150, [64, 64, 22]),
        ([b"a" * 100 * KIB] * 7, [3, 3, 1]),
        ([b"a" * KIB * KIB] * 3, [1, 1, 1]),
        ([b'"It."', b"a" * KIB * KIB, b'"It."', b""], [2, 1]),
        ([], []),
    ],
)
def test_a_chunk_has_as_many_bytes_as_it_may(lines: list[bytes], sizes: list[int]) -> None:
    found = chunks(lines)
    assert [len(chunk) for chunk in found] == sizes
    handed = [one for chunk in found for one in chunk]
    assert handed == list(enumerate(lines[: sum(sizes)], start=1))


def test_the_rest_of_a_line_that_is_too_long_is_passed_by() -> None:
    found = chunks([b'"It."', b"a" * (3 * KIB * KIB), b'"Was."'], most=9 * KIB * KIB)
    [[first, (number, error), last]] = found
    assert (first, number, last) == ((1, b'"It."'), 2, (3, b'"Was."'))
    assert isinstance(error, LpcfgError)
    assert str(error).startswith("expected lines of at most 1048576 bytes, got one of 3145728:")


@pytest.mark.parametrize(("k", "at_once"), [(1, 4), (50, 1)])
def test_long_lines_are_worked_on_a_few_at_once(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, k: int, at_once: int
) -> None:
    now, most = 0, 0

    async def answer(_: Lines, __: int, ___: bytes) -> bytes:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return b"{}\n"

    monkeypatch.setattr(Lines, "answer", answer)
    kept(
        Jobs(tmp_path, 9, 1.0), "a", b"\n".join([b"a" * 64 * KIB] * 20), options={**OPTIONS, "k": k}
    )
    with serve(jobs_dir=tmp_path, threads=2) as client:
        assert done(client, {"id": "a"})["answered"] == 20
    assert most == at_once


# A service whose process ends at once when it comes to a line that is `"deadly"`.
DEADLY = """
import asyncio, os, sys, time
from fastapi.testclient import TestClient
from lpcfg.settings import Settings
from lpcfg.serve.app import create_app
from lpcfg.serve.routes.lines import Lines

store, jobs, slow, patience = sys.argv[1:]
answer, begun = Lines.answer, asyncio.Event()

async def answer_or_die(lines, number, line):
    if line == b'"slow"':
        begun.set()
        await asyncio.sleep(float(slow))
    if line == b'"deadly"':
        try:
            await asyncio.wait_for(begun.wait(), float(patience))
        finally:
            os._exit(9)
    return await answer(lines, number, line)

Lines.answer = answer_or_die
with TestClient(create_app(Settings(model="small", model_store=store, jobs_dir=jobs))):
    time.sleep(60)
"""


def die(store: Path, jobs: Path, *, slow: float, patience: float) -> None:
    """Run a service until it dies.

    A line that is `"slow"` takes so many seconds, and dying waits for one so long.
    """
    given = [str(store), str(jobs), str(slow), str(patience)]
    run = subprocess.run(
        [sys.executable, "-c", DEADLY, *given], capture_output=True, text=True, check=False
    )
    assert run.returncode == 9, run.stderr


def test_a_job_that_kills_two_processes_is_set_aside_alone(
    store: Path, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Jobs(tmp_path, 9, 1.0)
    kept(home, "deadly", b'"It slept."\n' * 64 + b'"deadly"\n"It slept."')
    kept(home, "beside", b'"slow"\n"It slept."')
    die(store, tmp_path, slow=60, patience=60)  # with both under way
    assert [job.attempts() for job in home] == [1, 1]
    die(store, tmp_path, slow=0.3, patience=0.5)
    usual, again = Lines.answer, []

    async def answer(lines: Lines, number: int, line: bytes | LpcfgError) -> bytes:
        again.append(line)
        return await usual(lines, number, line)

    monkeypatch.setattr(Lines, "answer", answer)
    with serve(jobs_dir=tmp_path) as client:
        new = client.post("/v1/jobs", content=b'"It slept."').json()
        assert done(client, new)["problems"] == 0
        assert done(client, {"id": "beside"})["answered"] == 2
        told = until(lambda: failed(client.get("/v1/jobs/deadly").json()))
        assert b'"deadly"' not in again
        assert (told.answered, told.lines) == (64, 66)
        problem = told.problem
        assert (problem.type, problem.status, problem.line) == ("/docs#problem-job", 500, 65)
        assert "answer the lines from 65 on, got 2 attempts that failed" in problem.detail
        assert len(client.get("/v1/jobs/deadly/answers").content.splitlines()) == 64
        assert client.delete("/v1/jobs/deadly").status_code == 204


@pytest.mark.parametrize("died", [False, True])
def test_a_job_over_which_a_process_died_has_no_other_beside_it(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, died: bool
) -> None:
    home, now, together, counted = Jobs(tmp_path, 9, 1.0), set[bytes](), [], set[int]()
    monkeypatch.setattr(runner, "_CHUNK_BYTES", 1)  # each line is a chunk
    job, other = (kept(home, name, f"{name}\n".encode() * 80) for name in ("a", "b"))
    if died:
        job.begin_attempt()

    async def answer(_: Lines, __: int, line: bytes) -> bytes:
        now.add(line)
        together.append(len(now))
        if line == b"b":  # the other dies here, with what is counted of the first
            counted.add(job.attempts())
        await asyncio.sleep(0.001)
        now.discard(line)
        return b"{}\n"

    monkeypatch.setattr(Lines, "answer", answer)
    with serve(jobs_dir=tmp_path) as client:
        for one in (job, other):
            assert done(client, {"id": one.facts.id})["answered"] == 80
    assert max(together) == (1 if died else 2)
    assert 2 not in counted
    assert (job.attempts(), other.attempts()) == (0, 0)


def failed(told: dict[str, Any]) -> Any:
    found = JobAnswer.model_validate(told)
    return found if found.status == "failed" else None


def test_a_job_whose_process_ends_in_order_has_no_attempt_counted(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = kept(Jobs(tmp_path, 9, 1.0), "a")

    async def answer(*_: object) -> bytes:
        await asyncio.sleep(60)
        return b""

    with monkeypatch.context() as patched:
        patched.setattr(Lines, "answer", answer)
        for _ in range(3):
            with serve(jobs_dir=tmp_path):
                until(lambda: job.attempts() == 1)
            assert job.attempts() == 0
    with serve(jobs_dir=tmp_path) as client:
        assert done(client, {"id": "a"})["problems"] == 0


@pytest.mark.parametrize(
    ("line", "stuck", "during", "after"),
    [(b"a", 1, 2, 1), (b"a", 65, 1, 0), (b"a" * 300 * KIB, 64, 2, 1), (b"a" * 300 * KIB, 65, 1, 0)],
)
def test_a_death_is_counted_until_64_lines_are_answered(
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: bytes,
    stuck: int,
    during: int,
    after: int,
) -> None:
    job = kept(Jobs(tmp_path, 9, 1.0), "a", (line + b"\n") * 70)
    job.begin_attempt()
    reached = threading.Event()

    async def answer(_: Lines, number: int, __: bytes) -> bytes:
        if number == stuck:
            reached.set()
            await asyncio.sleep(60)
        return b"{}\n"

    monkeypatch.setattr(Lines, "answer", answer)
    with serve(jobs_dir=tmp_path):
        assert reached.wait(60)
        assert job.attempts() == during
    assert job.attempts() == after


def failing(times: int, work: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """Let some work fail so many times before it is done."""
    left = [error] * times

    def fail(*given: Any) -> Any:
        if left:
            raise left.pop()
        return work(*given)

    return fail


def test_a_full_disk_sets_no_job_aside(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(runner, "_SWEEP", 0.01)
    monkeypatch.setattr(runner, "_write", failing(3, runner._write, full))
    kept(Jobs(tmp_path, 9, 1.0), "a")
    with serve(jobs_dir=tmp_path) as client:
        assert done(client, {"id": "a"})["problems"] == 0


def test_a_job_with_a_fault_is_set_aside_once(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, times = runner._set_aside, []

    def set_aside(job: Job) -> None:
        times.append(job)
        usual(job)

    monkeypatch.setattr(runner, "_set_aside", set_aside)
    monkeypatch.setattr(Lines, "answer", failing(2, Lines.answer, MemoryError()))
    kept(Jobs(tmp_path, 9, 1.0), "a")
    with serve(jobs_dir=tmp_path) as client:
        assert until(lambda: failed(client.get("/v1/jobs/a").json())).problem.line == 1
        for _ in range(3):  # each of them begins after a look at all jobs
            done(client, client.post("/v1/jobs", content=b'"It slept."').json())
    assert len(times) == 1
