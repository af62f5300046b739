"""Every kind of models has an endpoint, batches, jobs and infer, also one of tests alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from lpcfg.base.errors import SettingsError
from lpcfg.kinds.dependencies import conllu
from lpcfg.serve.app import create_app
from lpcfg.settings import Settings
from tests import toy_kind
from tests.serve.conftest import Serve
from tests.serve.test_jobs import done, path_of

LINES = (
    b'"It slept."\n{"tokens": ["A", "cat"], "id": 7}\nnonsense\n{"tokens": ["A"], "tags": ["X"]}'
)


@pytest.fixture(scope="module")
def toy(serve: Serve, store: Path, tagger: str, tmp_path_factory: Any) -> Iterator[TestClient]:
    """Serve models of four kinds, one of them known to the tests alone."""
    with pytest.MonkeyPatch.context() as patched:
        toy_kind.register(patched)
        toy_kind.publish_length(store)
        jobs = tmp_path_factory.mktemp("jobs")
        with serve(models="length", tagger=tagger, jobs_dir=jobs) as running:
            yield running


def test_a_new_kind_has_an_endpoint(toy: TestClient) -> None:
    sentences = ["It slept.", {"tokens": ["A", "cat"], "id": 7}, {"tokens": []}]
    found = toy.post("/v1/length", json={"sentences": sentences, "least": 3}).json()
    assert found["model"]["name"] == "length"
    told = [(one["id"], one["status"], one["number"]) for one in found["sentences"]]
    assert told == [(None, "counted", 3), (7, "counted", 3), (None, "failed", 0)]
    found = toy.post("/v1/length", json={"text": "It slept. It is.", "unit": "letters"}).json()
    assert [one["number"] for one in found["sentences"]] == [8, 5]


@pytest.mark.parametrize(
    ("more", "at", "detail"),
    [
        ({"unit": "feet"}, "/unit", "expected 'words' or 'letters', got \"feet\""),
        ({"least": -1}, "/least", "expected at least 0, got -1"),
        ({"k": 2}, "/k", "expected no member `k`, got one"),
        ({"model": "small"}, "/model", "expected one of the models length, got 'small'"),
    ],
)
def test_options_of_a_new_kind_are_checked(
    toy: TestClient, more: dict[str, Any], at: str, detail: str
) -> None:
    told = toy.post("/v1/length", json={"text": "It is.", **more}).json()
    assert (told["status"], told["at"], told["detail"][: len(detail)]) == (422, at, detail)


def test_a_batch_is_answered_by_a_model_of_any_kind(toy: TestClient) -> None:
    answer = toy.post("/v1/batch?model=length&least=3", content=LINES)
    first, second, third, fourth = map(json.loads, answer.text.splitlines())
    assert (first["model"]["name"], first["sentence"]["number"]) == ("length", 3)
    assert (second["sentence"]["id"], second["sentence"]["number"]) == (7, 3)
    assert third["problem"]["status"] == 422
    assert fourth["problem"]["at"] == "/tags"
    refused = toy.post("/v1/batch?model=length&k=2", content=LINES).json()
    assert (refused["at"], refused["status"]) == ("#query/k", 422)
    for model, member in (("small", "parses"), ("en-dep", "tokens"), ("tags", "sign")):
        told = toy.post(f"/v1/batch?model={model}", content=b'"It slept."').json()
        assert member in told["sentence"], model


def test_a_job_is_answered_by_a_model_of_any_kind(toy: TestClient) -> None:
    job = toy.post("/v1/jobs?model=length&unit=letters", content=LINES).json()
    assert done(toy, job)["problems"] == 2
    batch = toy.post("/v1/batch?model=length&unit=letters", content=LINES)
    assert toy.get(f"{path_of(job)}/answers").content == batch.content


def test_infer_answers_by_a_model_of_any_kind(toy: TestClient) -> None:
    texts = ["It slept.", ""]
    tensor = {"name": "text", "datatype": "BYTES", "shape": [2], "data": texts}
    for model, path in (("length", "length"), ("en-dep", "dependencies"), ("tags", "tag")):
        outputs = toy.get(f"/v2/models/{model}").json()["outputs"]
        assert [one["name"] for one in outputs] == ["answer"]
        found = toy.post(f"/v2/models/{model}/infer", json={"inputs": [tensor]}).json()
        (answer,) = found["outputs"]
        expected = toy.post(f"/v1/{path}", json={"sentences": texts}).json()["sentences"]
        assert [json.loads(one) for one in answer["data"]] == expected


def test_a_line_a_sentence_comes_from_every_kind(toy: TestClient) -> None:
    for path in ("parse", "dependencies", "tag", "length"):
        body, accept = {"text": "It slept. A cat ran."}, {"accept": "application/x-ndjson"}
        lines = toy.post(f"/v1/{path}", json=body, headers=accept).text.splitlines()
        whole = toy.post(f"/v1/{path}", json=body).json()["sentences"]
        assert [json.loads(one) for one in lines] == whole


def test_conllu_comes_from_kinds_that_have_it(toy: TestClient) -> None:
    body, accept = {"sentences": ["", "It slept."]}, {"accept": "text/x-conllu"}
    for path in ("parse", "dependencies"):
        answer = toy.post(f"/v1/{path}", json=body, headers=accept)
        again = toy.post(f"/v1/{path}", json=body, headers=accept)
        assert answer.text == again.text
        assert len(list(conllu.read_string(answer.text))) == 1
        assert answer.text.startswith("# failed: ")
    for path in ("tag", "length"):
        assert "sentences" in toy.post(f"/v1/{path}", json=body, headers=accept).json()


def test_all_kinds_are_described(toy: TestClient) -> None:
    listed = toy.get("/v1/models").json()["models"]
    kinds = [(one["name"], one["kind"], one["default"]) for one in listed]
    assert kinds == [
        ("small", "constituency", True),
        ("length", "length", True),
        ("en-dep", "dependencies", True),
        ("tags", "tags", True),
    ]
    assert "NN" in listed[3]["tags"]
    assert toy.get("/v1/models/length").json()["facts"] == {"kind": "length"}
    api = toy.get("/openapi.json").json()
    unit = api["components"]["schemas"]["LengthRequest"]["properties"]["unit"]
    assert (unit["enum"], unit["description"]) == (["words", "letters"], "what is counted")
    query = {one["name"]: one for one in api["paths"]["/v1/batch"]["post"]["parameters"]}
    assert {"model", "k", "objective", "unit", "least"} <= query.keys()
    assert query["k"]["schema"]["maximum"] == 50
    line = api["components"]["schemas"]["BatchLine"]["properties"]["sentence"]["anyOf"]
    assert {"$ref": "#/components/schemas/LengthAnswer"} in line


def test_the_first_model_of_a_kind_is_its_default(serve: Serve, store: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        toy_kind.register(patched)
        toy_kind.publish_length(store, "one-more", more=1)
        toy_kind.publish_length(store, "length")
        with serve(model="one-more", models="length small") as client:
            for name, number in ((None, 4), ("length", 3), ("one-more", 4)):
                asked = {"text": "It slept.", "model": name}
                told = client.post("/v1/length", json=asked).json()
                assert told["sentences"][0]["number"] == number
            assert client.post("/v1/parse", json={"text": "It slept."}).status_code == 200
            line = client.post("/v1/batch", content=b'"It slept."').json()
            assert line["model"]["name"] == "one-more"


def test_names_of_served_models_differ(store: Path) -> None:
    for more in ({"models": "small"}, {"dependencies": "small"}, {"tagger": "small"}):
        settings = Settings(model="small", model_store=str(store), **more)
        with pytest.raises(SettingsError, match="got small twice"):
            create_app(settings)
