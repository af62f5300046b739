"""Compressed bodies: expanded piece by piece, within the limits of bodies that are not."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving import Process
from fastapi.testclient import TestClient

from tests.serve.conftest import Serve, made_up
from tests.serve.test_jobs import done, path_of

GZIP = {"content-encoding": "gzip"}
LINES = b'"The dog slept."\nnonsense\n\n{"id": 7, "tokens": ["A", "cat", "ran"]}'


def answers(client: TestClient, body: bytes) -> list[dict[str, Any]]:
    found = client.post("/v1/batch", content=body, headers=GZIP)
    assert found.status_code == 200
    return [json.loads(line) for line in found.text.splitlines()]


def test_a_compressed_batch_has_the_answers_of_the_plain_one(client: TestClient) -> None:
    plain = client.post("/v1/batch", content=LINES).content
    several = gzip.compress(LINES[:20]) + gzip.compress(LINES[20:])  # as `cat a.gz b.gz` makes
    for body in (gzip.compress(LINES), several):
        assert client.post("/v1/batch", content=body, headers=GZIP).content == plain


def test_a_large_compressed_batch_is_answered_line_by_line(client: TestClient) -> None:
    words = made_up(300, range(3, 6), seed=11)
    body = b"".join(json.dumps({"id": "x" * 5000, "tokens": one}).encode() + b"\n" for one in words)
    found = answers(client, gzip.compress(body))
    assert [one["line"] for one in found] == list(range(1, 301))
    assert [len(one["sentence"]["tokens"]) for one in found] == [len(one) for one in words]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"no gzip", "expected a body in gzip, got something else"),
        (gzip.compress(LINES)[:-1], "expected a whole body in gzip, got the beginning of one"),
        (b"", "expected a whole body in gzip, got the beginning of one"),
    ],
    ids=["plain", "torn", "empty"],  # what compression writes depends on the time
)
def test_a_batch_that_is_no_gzip_ends_with_a_problem(
    client: TestClient, body: bytes, told: str
) -> None:
    *_, last = answers(client, body)
    assert last["problem"]["status"] == 422
    assert last["problem"]["detail"].startswith(told)


def test_other_compressions_are_refused_before_the_answer_begins(client: TestClient) -> None:
    headers = {"content-encoding": "br", "content-type": "application/json"}
    for path in ("/v1/batch", "/v1/parse"):
        found = client.post(path, content=LINES, headers=headers)
        assert found.status_code == 415
        assert "expected the content-encoding gzip or none, got 'br'" in found.text


def test_a_body_that_expands_enormously_takes_little_memory(process: Process) -> None:
    before = process.resident_bytes()
    bomb = gzip.compress(b"a" * (200 << 20))
    told = process.ask("POST", "/v1/batch", bomb, GZIP)
    [line] = told.body.splitlines()
    assert json.loads(line)["problem"]["value"] == 200 << 20
    assert process.ask("POST", "/v1/parse", bomb, GZIP).status == 413
    # a line may have a megabyte, and is kept some times over while it is read
    assert process.resident_bytes() < before + (20 << 20)


def test_a_compressed_job_is_kept_expanded(serve: Serve, tmp_path: Path) -> None:
    with serve(jobs_dir=tmp_path, job_bytes=1000) as client:
        job = client.post("/v1/jobs", content=gzip.compress(LINES), headers=GZIP).json()
        assert (job["lines"], job["status"]) == (4, "waiting")
        assert (tmp_path / job["id"] / "lines.ndjson").read_bytes() == LINES
        done(client, job)
        found = client.get(f"{path_of(job)}/answers").content
        assert found == client.post("/v1/batch", content=LINES).content
        for body, status in ((gzip.compress(b"a" * 1001), 413), (b"no gzip", 422)):
            assert client.post("/v1/jobs", content=body, headers=GZIP).status_code == status
        assert len([one for one in tmp_path.iterdir() if one.name[0] != "."]) == 1
