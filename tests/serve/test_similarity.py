"""`POST /v1/similarity`: answers, limits, problems, quotas."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lpcfg.words.similarity import Similarity, comparison
from tests.serve.conftest import Serve

PATH = "/v1/similarity"
PAIR = {"first": "The big cat 🐈 runs.", "second": "A large feline sprints!"}


@pytest.fixture(scope="module")
def similar(serve: Serve, measure: Path) -> Iterator[TestClient]:
    with serve(similarity_file=measure, max_tokens=12, max_sentences=3) as running:
        yield running


def test_pairs_are_answered_in_order_as_the_library_does(
    similar: TestClient, measure: Path
) -> None:
    pairs = [PAIR, {"first": "", "second": "cat"}]
    answer = similar.post(PATH, json={"pairs": pairs})
    assert answer.status_code == 200
    library = Similarity.load(measure)
    expected = [comparison(library, (one["first"], one["second"])) for one in pairs]
    assert answer.json() == {"scale": [0.0, 5.0], "pairs": expected}
    first = answer.json()["pairs"][0]
    for one in first["alignments"]:
        assert one["similarity"] > 0.5
    assert [(one["first"], one["second"]) for one in first["alignments"]] == [
        (1, 1),
        (2, 2),
        (4, 3),
    ]
    token = first["first"]["tokens"][4]
    assert PAIR["first"][token["start"] : token["end"]] == token["text"] == "runs"
    assert similar.post(PATH, json={"pairs": []}).json()["pairs"] == []


@pytest.mark.parametrize(
    ("body", "status", "at", "detail"),
    [
        ({"pairs": [PAIR] * 4}, 422, "/pairs", "at most 3 pairs"),
        ({"pairs": [PAIR, {**PAIR, "second": "cat " * 13}]}, 422, "/pairs/1/second", "12 tokens"),
        ({"pairs": [{"first": "a"}]}, 422, "/pairs/0/second", "expected"),
        ({"pairs": [["a", "b"]]}, 422, "/pairs/0", 'an object like {"first"'),
        ({"pairs": [{**PAIR, "third": "c"}]}, 422, "/pairs/0/third", "third"),
        ({}, 422, "/pairs", "expected"),
    ],
)
def test_bad_requests_get_a_problem_that_says_where(
    body: object, status: int, at: str, detail: str, similar: TestClient
) -> None:
    answer = similar.post(PATH, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["at"] == at
    assert detail in answer.json()["detail"] + answer.json()["at"]


def test_without_a_measure_the_endpoint_says_what_is_missing(client: TestClient) -> None:
    answer = client.post(PATH, json={"pairs": [PAIR]})
    assert answer.status_code == 404
    assert "LPCFG_SIMILARITY_FILE" in answer.json()["detail"]


def test_both_sentences_of_a_pair_count_towards_the_quota(
    serve: Serve, measure: Path, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"me {hashlib.sha256(b'secret').hexdigest()} 5\n")
    with serve(similarity_file=measure, api_keys_file=keys) as running:
        headers = {"Authorization": "Bearer secret"}
        body = {"pairs": [PAIR, PAIR]}
        assert running.post(PATH, json=body).status_code == 401
        assert running.post(PATH, json=body, headers=headers).status_code == 200
        assert running.post(PATH, json=body, headers=headers).status_code == 429


def test_answers_are_counted(similar: TestClient) -> None:
    similar.post(PATH, json={"pairs": [PAIR]})
    metrics = similar.get("/metrics").text
    assert 'lpcfg_sentences_total{endpoint="/v1/similarity"}' in metrics
