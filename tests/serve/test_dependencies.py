"""POST /v1/dependencies: answers, limits and problems."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest
from fastapi.testclient import TestClient

from lpcfg.base import jit as compiled
from lpcfg.base.errors import StoreError
from lpcfg.client import AsyncClient, Client
from lpcfg.kinds.constituency.kind import Constituency
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies.model import to_bundle
from lpcfg.kinds.dependencies.predict import DependencyParser
from lpcfg.protocol.schemas import DependenciesResponse, DependencyBatchLine
from lpcfg.serve import served
from lpcfg.serve.app import create_app
from lpcfg.serve.served import Models
from lpcfg.settings import Settings
from lpcfg.store import versions
from lpcfg.store.versions import publish
from tests.kinds.dependencies import small
from tests.serve.conftest import Serve

PATH = "/v1/dependencies"


@pytest.fixture(scope="module")
def dep(store: Path) -> DependencyParser:
    """Make a dependency model in the store beside `small`."""
    publish(store, "dep", to_bundle(small.model(), facts={}, card=""))
    return DependencyParser.load("dep", store)


@pytest.fixture(scope="module")
def client(serve: Serve, dep: DependencyParser) -> Iterator[TestClient]:
    del dep
    with serve(dependencies="dep") as running:
        yield running


def test_answers_are_the_parsers(client: TestClient, dep: DependencyParser) -> None:
    request = {"sentences": [{"tokens": ["The", "dog", "saw", "a", "cat", "."], "id": 7}, "Go!"]}
    answer = DependenciesResponse.model_validate(client.post(PATH, json=request).json())
    assert (answer.model.name, answer.model.version) == ("dep", 1)
    first, second = answer.sentences
    [found] = dep.parse([["The", "dog", "saw", "a", "cat", "."]])
    assert first.id == 7
    assert tuple(token.head for token in first.tokens) == found.arcs.heads
    assert tuple(token.relation for token in first.tokens) == found.arcs.labels
    assert [token.probability for token in first.tokens] == pytest.approx(found.probabilities)
    assert first.log_probability == pytest.approx(found.log_probability)
    assert [(token.start, token.end) for token in second.tokens] == [(0, 2), (2, 3)]


def test_a_first_start_compiles_dependencies_in_another_process(
    store: Path, dep: DependencyParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Mock()

    def compile_one(kind: object, parser: object) -> None:
        del kind, parser
        for do in compiled._to_do:
            do()

    monkeypatch.setattr(served, "BackgroundCompiler", lambda: beside)
    monkeypatch.setattr(Constituency, "warm", compile_one)
    models = Models(["small"], str(store), "dep")
    asyncio.run(models.load())
    models.close()
    assert [name for name, *_ in beside.method_calls] == ["begin", "wait"]
    ready, prepared = served.ready, []
    monkeypatch.setattr(served, "ready", lambda *one: prepared.append(ready(*one)))
    beside.begin.call_args.args[0]()
    assert [one.reference for one in prepared] == [dep.reference]


def test_text_is_split_and_a_sentence_without_tokens_has_failed(client: TestClient) -> None:
    answer = client.post(PATH, json={"text": "The dog saw a cat. A cat ate the bone."}).json()
    assert [len(one["tokens"]) for one in answer["sentences"]] == [6, 6]
    answer = client.post(PATH, json={"sentences": [{"tokens": []}]}).json()
    assert answer["sentences"][0]["status"] == "failed"


def test_conllu_comes_where_it_is_accepted(client: TestClient) -> None:
    text = "The dog saw a cat. 🙂 saw the river."
    answer = client.post(PATH, json={"text": text}, headers={"Accept": "text/x-conllu"})
    assert answer.headers["content-type"].startswith("text/x-conllu")
    sentences = list(conllu.read_string(answer.text))
    assert "".join(one.text for one in sentences).replace(" ", "") == text.replace(" ", "")
    assert sentences[0].arcs.heads == (2, 3, 0, 5, 3, 3)


def test_a_line_a_sentence_comes_where_it_is_accepted(client: TestClient) -> None:
    sentences = ["The dog saw a cat.", {"tokens": [], "id": 2}, {"tokens": ["Go"], "id": "x"}]
    whole = client.post(PATH, json={"sentences": sentences}).json()
    headers = {"Accept": "application/x-ndjson"}
    answer = client.post(PATH, json={"sentences": sentences}, headers=headers)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in answer.text.splitlines()] == whole["sentences"]


def test_a_batch_answers_each_line_in_order(client: TestClient) -> None:
    lines = [
        '"The dog saw a cat."',
        '{"tokens": ["Go", "!"], "id": 5}',
        "",
        '{"tokens": ["Go"], "tags": ["X"]}',
        '{"tokens": []}',
        "{nothing",
    ]
    answer = client.post(f"{PATH}/batch", content="\n".join(lines))
    assert answer.headers["content-type"] == "application/x-ndjson"
    found = [DependencyBatchLine.model_validate_json(line) for line in answer.text.splitlines()]
    assert [one.line for one in found] == [1, 2, 3, 4, 5, 6]
    told = [(one.sentence.id, one.sentence.status) for one in found if one.sentence is not None]
    assert told == [(None, "parsed"), (5, "parsed"), (None, "failed")]
    problems = [one.problem for one in found if one.problem is not None]
    assert [one.at for one in problems] == ["", "/tags", ""]
    single = client.post(PATH, json={"sentences": ["The dog saw a cat."]}).json()
    first = json.loads(answer.text.splitlines()[0])
    assert (first["model"], [first["sentence"]]) == (single["model"], single["sentences"])


def test_a_batch_refuses_a_model_that_is_not_served(client: TestClient) -> None:
    answer = client.post(f"{PATH}/batch?model=small", content='"Go."')
    assert answer.status_code == 422
    assert answer.json()["at"] == "#query/model"


@pytest.mark.parametrize(
    ("request_", "at", "message"),
    [
        ({"sentences": [{"tokens": ["a"], "tags": ["X"]}]}, "/sentences/0/tags", "without tags"),
        ({"text": "Go.", "model": "small"}, "/model", "got 'small'"),
        ({"text": "Go.", "k": 2}, "/k", ""),
        ({"sentences": [{"tokens": ["a"] * 201}]}, "/sentences/0/tokens", "at most 200 tokens"),
        ({}, "", "either `text` or `sentences`"),
    ],
)
def test_bad_requests_are_explained(
    client: TestClient, request_: dict[str, object], at: str, message: str
) -> None:
    answer = client.post(PATH, json=request_)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert message in problem["detail"]
    assert (problem.get("at") or "") == at


def test_a_service_without_a_dependency_model_says_so(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "BUILT_IN", tmp_path)  # else `en-dep` of the package is served
    with serve() as running:
        answer = running.post(PATH, json={"text": "Go."})
    assert answer.status_code == 404
    assert "LPCFG_DEPENDENCIES" in answer.json()["detail"]


def test_a_named_dependency_model_must_be_in_the_store(store: Path) -> None:
    settings = Settings(model="small", model_store=str(store), dependencies="absent")
    with pytest.raises(StoreError, match="expected a model `absent`"):
        create_app(settings)


def test_both_clients_read_answers(client: TestClient) -> None:
    def passed_on(request: httpx.Request) -> httpx.Response:
        query = request.url.raw_path.decode()
        answer = client.post(query, content=request.content, headers=request.headers)
        return httpx.Response(answer.status_code, content=answer.content)

    with Client("http://service", transport=httpx.MockTransport(passed_on)) as one:
        answer = one.dependencies("The dog saw a cat.")
        lines = list(one.dependencies_batch(["The dog saw a cat."] * 65 + ["Go!"], model="dep"))
    assert answer.sentences[0].tokens[2].relation == "root"
    assert [line.line for line in lines] == list(range(1, 67))
    assert lines[64].sentence == answer.sentences[0].model_copy(update={"id": None})

    async def asked() -> tuple[DependenciesResponse, list[DependencyBatchLine]]:
        async with AsyncClient("http://s", transport=httpx.MockTransport(passed_on)) as other:
            sentences = ["The dog saw a cat."] * 65 + ["Go!"]
            found = [line async for line in other.dependencies_batch(sentences)]
            return await other.dependencies(["The dog saw a cat."]), found

    assert asyncio.run(asked()) == (answer, lines)
