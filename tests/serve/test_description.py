"""The OpenAPI description: valid, complete, and what the service does."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fastapi.testclient import TestClient
from openapi_spec_validator import validate

from tests.serve.conftest import Serve


@pytest.fixture(scope="module")
def api(client: TestClient) -> Any:
    return client.get("/openapi.json").json()


def operations(api: Any) -> list[tuple[str, str, Any]]:
    return [
        (method, path, operation)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_description_is_valid(api: Any) -> None:
    validate(api)


def test_every_failure_is_described_as_a_problem(api: Any) -> None:
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for method, path, operation in operations(api):
        failures = {status: one for status, one in operation["responses"].items() if status >= "4"}
        assert failures, (method, path)
        for answer in failures.values():
            assert answer["content"] == {"application/problem+json": schema}
    assert "HTTPValidationError" not in api["components"]["schemas"]


def test_keys_are_described_where_they_are_asked_for(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"ann {'a' * 64}\n")
    for settings in ({}, {"api_keys_file": file}, {"admin_keys_file": file}):
        with serve(**settings) as client:
            api = client.get("/openapi.json").json()
        secured = {path for _, path, operation in operations(api) if "security" in operation}
        assert ("/v1/parse" in secured) is ("api_keys_file" in settings)
        assert ("/v1/models/{name}/reload" in secured) is ("admin_keys_file" in settings)


def examples_of(api: Any, content: Any) -> list[Any]:
    if "example" in content:
        return [content["example"]]
    name = content["schema"]["$ref"].rpartition("/")[2]
    found: list[Any] = api["components"]["schemas"][name]["examples"]
    return found


def test_every_example_of_a_request_is_answered(api: Any, client: TestClient) -> None:
    asked = 0
    for method, path, operation in operations(api):
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            for example in examples_of(api, content):
                body = example if isinstance(example, str) else json.dumps(example)
                answer = client.request(method, path, content=body, headers={"content-type": kind})
                # 404: this service has no model for it
                assert answer.status_code in (200, 404), answer.text
                assert '"problem": {' not in answer.text
                asked += answer.status_code == 200
    assert asked >= 6


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        ("parse", {"text": "It is."}),
        ("parse", {"sentences": ["It is.", {"tokens": ["It"]}]}),
        ("parse", {"text": None, "sentences": ["It is."]}),
        ("parse", {"text": "It is.", "sentences": None}),
        ("parse", {"text": "It is.", "sentences": ["It is."]}),
        ("parse", {"text": None, "sentences": None}),
        ("parse", {}),
        ("parse", {"sentences": ["It is."] * 3}),
        ("parse", {"sentences": [{"tokens": ["a"] * 5}]}),
        ("parse", {"text": "It is.", "k": 4}),
        ("parse", {"text": "It is.", "k": 5}),
        ("marginals", {"sentences": ["It is."]}),
        ("marginals", {"sentences": ["It is.", "It is."]}),
        ("marginals", {"sentences": []}),
        ("tree-probability", {"trees": ["(S (A a))"] * 2}),
        ("tree-probability", {"trees": ["(S (A a))"] * 3}),
    ],
)
def test_the_schema_allows_what_the_service_answers(
    serve: Serve, path: str, request_: dict[str, Any]
) -> None:
    with serve(max_sentences=2, max_tokens=4, max_parses=4) as client:
        api = client.get("/openapi.json").json()
        status = client.post(f"/v1/{path}", json=request_).status_code
    content = api["paths"][f"/v1/{path}"]["post"]["requestBody"]["content"]
    schema = {**content["application/json"]["schema"], "components": api["components"]}
    allowed = jsonschema.Draft202012Validator(schema).is_valid(request_)
    assert allowed is (status == 200)
    assert status in (200, 422)
