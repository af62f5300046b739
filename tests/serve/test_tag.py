"""POST /v1/tag: answers, limits, problems, quotas."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from lpcfg.base.errors import StoreError
from lpcfg.client import AsyncClient, Client
from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.protocol.schemas import TagResponse
from lpcfg.serve.app import create_app
from lpcfg.settings import Settings
from tests.serve.conftest import Serve

PATH = "/v1/tag"


@pytest.fixture(scope="module")
def tagging(serve: Serve, tagger: str) -> Iterator[TestClient]:
    with serve(tagger=tagger) as running:
        yield running


def test_answers_are_the_taggers(tagging: TestClient, tagger: str, store: Path) -> None:
    given = {"tokens": ["The", "saw", "sang", "."], "tags": [None, "NN", None, None], "id": 7}
    answer = TagResponse.model_validate(
        tagging.post(PATH, json={"sentences": [given, "Anna sang."]}).json()
    )
    library = SequenceTagger.load(tagger, store)
    assert (answer.model.name, answer.model.version) == (tagger, 1)
    first, second = answer.sentences
    found = library.tag(Sentence(given["tokens"], tags=given["tags"]))
    assert (first.id, first.status) == (7, "tagged")
    assert tuple(token.tag for token in first.tokens) == found.tags
    assert first.tokens[1].tag == "NN"
    assert tuple(token.probability for token in first.tokens) == found.probabilities
    assert (first.log_probability, first.sign) == (found.log_probability, found.sign)
    assert [(token.start, token.end) for token in second.tokens] == [(0, 4), (5, 9), (9, 10)]


def test_text_is_split_and_a_sentence_without_tokens_has_failed(tagging: TestClient) -> None:
    answer = tagging.post(PATH, json={"text": "The dog sang. Anna saw the park."}).json()
    assert [len(one["tokens"]) for one in answer["sentences"]] == [4, 5]
    answer = tagging.post(PATH, json={"sentences": [{"tokens": []}]}).json()
    failed = answer["sentences"][0]
    assert (failed["status"], failed["reason"]) == ("failed", "the sentence has no words")


@pytest.mark.parametrize(
    ("request_", "at", "message"),
    [
        (
            {"sentences": ["a", {"tokens": ["a"], "tags": ["X"]}]},
            "/sentences/1/tags/0",
            "a tag of the model's",
        ),
        (
            {"sentences": [{"tokens": ["a"], "constraints": [{"start": 0, "end": 1}]}]},
            "/sentences/0/constraints",
            "without constraints",
        ),
        ({"text": "Go.", "model": "small"}, "/model", "got 'small'"),
        ({"text": "Go.", "k": 2}, "/k", ""),
        ({"sentences": [{"tokens": ["a"] * 201}]}, "/sentences/0/tokens", "at most 200 tokens"),
        ({}, "", "either `text` or `sentences`"),
    ],
)
def test_bad_requests_are_explained(
    tagging: TestClient, request_: dict[str, object], at: str, message: str
) -> None:
    answer = tagging.post(PATH, json=request_)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert message in problem["detail"]
    assert (problem.get("at") or "") == at


def test_a_service_without_a_tagging_model_says_so(client: TestClient) -> None:
    answer = client.post(PATH, json={"text": "Go."})
    assert answer.status_code == 404
    assert "LPCFG_TAGGER" in answer.json()["detail"]


def test_a_named_tagging_model_must_be_in_the_store(store: Path) -> None:
    settings = Settings(model="small", model_store=str(store), tagger="absent")
    with pytest.raises(StoreError, match="expected a model `absent`"):
        create_app(settings)


def test_sentences_count_towards_the_quota_and_in_metrics(
    serve: Serve, tagger: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"me {hashlib.sha256(b'secret').hexdigest()} 3\n")
    with serve(tagger=tagger, api_keys_file=keys) as running:
        headers = {"Authorization": "Bearer secret"}
        body = {"sentences": ["Go.", "Go."]}
        assert running.post(PATH, json=body).status_code == 401
        assert running.post(PATH, json=body, headers=headers).status_code == 200
        assert running.post(PATH, json=body, headers=headers).status_code == 429
        assert 'lpcfg_sentences_total{endpoint="/v1/tag"} 2.0' in running.get("/metrics").text


def test_the_client_reads_answers(tagging: TestClient) -> None:
    def passed_on(request: httpx.Request) -> httpx.Response:
        answer = tagging.post(request.url.path, json=json.loads(request.content))
        return httpx.Response(answer.status_code, content=answer.content)

    with Client("http://service", transport=httpx.MockTransport(passed_on)) as one:
        answer = one.tag("The dog sang.")
    assert [token.tag for token in answer.sentences[0].tokens] == ["DT", "NN", "VBD", "."]

    async def asked() -> TagResponse:
        async with AsyncClient("http://s", transport=httpx.MockTransport(passed_on)) as other:
            return await other.tag(["The dog sang."])

    assert asyncio.run(asked()).sentences[0].tokens[1].tag == "NN"
