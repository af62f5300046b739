"""The Open Inference Protocol: metadata and infer, in JSON and in Triton's binary form."""

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pydantic_core
import pytest
from fastapi.testclient import TestClient

from tests.serve.conftest import Serve

PATH = "/v2/models/small/infer"
TEXTS = ["The dog saw a cat.", "It slept.", ""]


def tensor(**more: Any) -> dict[str, Any]:
    return {"name": "text", "datatype": "BYTES", "shape": [3], **more}


def test_models_tell_their_tensors(client: TestClient) -> None:
    found = client.get("/v2/models/small").json()
    assert found == client.get("/v2/models/small/versions/1").json()
    assert (found["name"], found["versions"]) == ("small", ["1"])
    assert [one["name"] for one in found["inputs"]] == ["text"]
    assert client.get("/v2").json()["name"] == "lpcfg"
    assert client.get("/v2/models/small/versions/1/ready").json()["ready"] is True
    for path in ("/v2/models/none", "/v2/models/small/versions/9", "/v2/models/none/ready"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"] == answer.json()["detail"]


def expected(client: TestClient) -> tuple[list[str], list[Any]]:
    answers = client.post("/v1/parse", json={"sentences": TEXTS}).json()["sentences"]
    return [one["parses"][0]["tree"] if one["parses"] else "" for one in answers], answers


@pytest.mark.parametrize("path", [PATH, "/v2/models/small/versions/1/infer"])
def test_a_tensor_of_sentences_is_parsed(client: TestClient, path: str) -> None:
    trees, answers = expected(client)
    for data in (TEXTS, [[one] for one in TEXTS]):
        request = {"id": "me", "inputs": [tensor(data=data)], "parameters": {"x": 1}}
        found = client.post(path, json=request).json()
        assert (found["id"], found["model_name"], found["model_version"]) == ("me", "small", "1")
        outputs = {one["name"]: one for one in found["outputs"]}
        assert outputs["tree"]["data"] == trees
        assert [json.loads(one) for one in outputs["answer"]["data"]] == answers
        assert outputs["tree"]["shape"] == [3]
    request["outputs"] = [{"name": "tree"}]
    found = client.post(path, json=request).json()
    assert [one["name"] for one in found["outputs"]] == ["tree"]


def binary(strings: list[bytes], **more: Any) -> tuple[bytes, dict[str, str]]:
    head = json.dumps({"inputs": [tensor(**more)]}).encode()
    body = b"".join(len(one).to_bytes(4, "little") + one for one in strings)
    return head + body, {"inference-header-content-length": str(len(head))}


def test_strings_may_come_in_binary_form(client: TestClient) -> None:
    content, headers = binary([one.encode() for one in TEXTS])
    found = client.post(PATH, content=content, headers=headers).json()
    assert found["outputs"][0]["data"] == expected(client)[0]


@pytest.mark.parametrize(
    ("content", "headers", "told"),
    [
        (*binary([b"\xff"]), "expected UTF-8, got something else"),
        (binary([b"It."])[0][:-1], binary([b"It."])[1], "got one that ends too early"),
        (b"{}", {"inference-header-content-length": "9"}, "at most 2, got '9'"),
        (b"{}", {"inference-header-content-length": "1" * 5000}, "at most 2, got '111"),
        (b"{}", {}, "expected a member `inputs`, got none"),
        (b'{"inputs": []}', {}, "expected a tensor `text` of the datatype BYTES"),
        (json.dumps({"inputs": [tensor(data=[1])]}).encode(), {}, "expected strings, got"),
        (
            json.dumps({"inputs": [tensor(data=[])], "outputs": [{"name": "x"}]}).encode(),
            {},
            "expected outputs among tree, answer, got 'x'",
        ),
    ],
)
def test_wrong_tensors_are_refused(
    client: TestClient, content: bytes, headers: dict[str, str], told: str
) -> None:
    answer = client.post(PATH, content=content, headers=headers)
    assert answer.status_code == 422
    assert told in answer.json()["detail"]
    assert answer.json()["error"] == answer.json()["detail"]


def test_tensors_have_the_limits_of_requests(serve: Serve) -> None:
    with serve(max_sentences=2, max_tokens=3, max_body_bytes=1000) as client:
        for data, limit in ((TEXTS, 2), ([TEXTS[0]], 3)):
            answer = client.post(PATH, json={"inputs": [tensor(data=data)]})
            assert (answer.status_code, answer.json()["limit"]) == (422, limit)
        answer = client.post(PATH, json={"inputs": [tensor(data=["a" * 2000])]})
        assert answer.status_code == 413


MANY = ["It slept."] * 2000
"""Sentences whose JSON is large, and more than a request may have."""


@pytest.mark.parametrize(
    ("path", "content", "headers"),
    [
        (PATH, json.dumps({"inputs": [tensor(data=MANY)]}).encode(), {}),
        (PATH, *binary([b"It slept."] * 2000)),
        ("/v1/parse", json.dumps({"sentences": MANY}).encode(), {}),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_event_loop_is_free_while_a_large_body_is_read(
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    content: bytes,
    headers: dict[str, str],
    packed: bool,
) -> None:
    begun, answered, read = threading.Event(), threading.Event(), pydantic_core.from_json
    free = []

    def slow(*given: Any, **options: Any) -> Any:
        begun.set()
        free.append(answered.wait(5))  # not set before this ends, if it keeps the loop waiting
        return read(*given, **options)

    monkeypatch.setattr(pydantic_core, "from_json", slow)
    headers = {"content-type": "application/json", **headers}
    if packed:
        content, headers = gzip.compress(content), {**headers, "content-encoding": "gzip"}
    with ThreadPoolExecutor(1) as sender:
        sent = sender.submit(client.post, path, content=content, headers=headers)
        assert begun.wait(30)
        assert client.get("/v2/health/live").status_code == 200
        answered.set()
        refused = sent.result()
    assert free == [True]
    assert (refused.status_code, refused.json()["limit"]) == (422, 256)


@pytest.mark.parametrize("packed", [False, True])
def test_tensors_are_as_deep_as_other_json(client: TestClient, packed: bool) -> None:
    content = b'{"inputs": [' + b"[" * 40 + b"]" * 40 + b" " * 20_000 + b"]}"
    headers = {"content-encoding": "gzip"} if packed else {}
    sent = gzip.compress(content) if packed else content
    answer = client.post(PATH, content=sent, headers=headers)
    assert (answer.status_code, answer.json()["limit"], answer.json()["value"]) == (422, 32, 42)
