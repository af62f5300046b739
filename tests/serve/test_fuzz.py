"""Hostile requests: a decided answer, an exact round trip, and time that grows no faster."""

import gc
import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from benchmarks.serving import Process
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from lpcfg.protocol.schemas import BatchLine, Problem
from lpcfg.trees.brackets import parse_tree

OPERATIONS = (
    "POST /v1/parse",
    "POST /v1/marginals",
    "POST /v1/tree-probability",
    "POST /v1/dependencies",
    "POST /v1/dependencies/batch",
    "POST /v1/tag",
    "POST /v1/batch",
    "POST /v1/jobs",
    "GET /v1/jobs/{id}",
    "GET /v1/jobs/{id}/answers",
    "DELETE /v1/jobs/{id}",
    "POST /v1/similarity",
    "GET /v1/models",
    "GET /v1/models/{name}",
    "POST /v1/models/{name}/reload",
    "GET /v2/health/live",
    "GET /v2/health/ready",
    "GET /v2",
    "GET /v2/models/{name}",
    "GET /v2/models/{name}/ready",
    "GET /v2/models/{name}/versions/{version}",
    "GET /v2/models/{name}/versions/{version}/ready",
    "POST /v2/models/{name}/infer",
    "POST /v2/models/{name}/versions/{version}/infer",
    "GET /metrics",
)


@schemathesis.serializer("application/x-ndjson")
def serialize_lines(_: object, value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


@pytest.fixture(scope="module")
def described(process: Process) -> Any:
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{process.port}/openapi.json")


def test_the_fuzzed_operations_are_all_operations(described: Any) -> None:
    found = [one.ok() for one in described.get_all_operations()]
    assert sorted(f"{one.method.upper()} {one.path}" for one in found) == sorted(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_allowed_request_has_a_documented_answer(described: Any, operation: str) -> None:
    method, path = operation.split()

    @given(described[path][method].as_strategy())
    @settings(max_examples=100)
    def ask(case: Any) -> None:
        case.call_and_validate(
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ]
        )

    ask()


def decided(answer: Any) -> bool:
    """Check that the answer is 200, or a problem of the client's, and return which."""
    if answer.status_code == 200:
        return True
    assert 400 <= answer.status_code < 500, answer.text
    check_words(Problem.model_validate_json(answer.content))
    return False


def check_words(problem: Problem) -> None:
    """Check that every fault says what was expected, what came and the cure, in words of our
    own.
    """
    for one in (problem, *(problem.errors or ())):
        assert re.match("expected .+, got .+: .+", one.detail, re.DOTALL), one.detail
        assert not re.search("[Ii]nput|should (be|have)|dictionary|a valid", one.detail)


anything = st.text(st.characters(codec=None), max_size=40)
"""Every code point, lone surrogates and NUL among them."""
words = st.lists(
    st.text(
        st.characters(codec="utf-8", exclude_characters=" \t\n\r\f\v"), min_size=1, max_size=12
    ),
    max_size=8,
)


@given(st.lists(anything, max_size=6))
def test_tokens_come_back_as_they_were_sent(client: TestClient, tokens: list[str]) -> None:
    answer = client.post(
        "/v1/parse",
        content=json.dumps({"sentences": [{"tokens": tokens}]}),
        headers={"content-type": "application/json"},
    )
    blank = [one for one in tokens if not re.fullmatch(r"[^ \t\n\r\f\v]+( [^ \t\n\r\f\v]+)*", one)]
    surrogates = [one for one in "".join(tokens) if "\ud800" <= one <= "\udfff"]
    bad = bool(blank or surrogates)
    assert decided(answer) is not bad
    if not bad:
        (sentence,) = answer.json()["sentences"]
        assert [token["text"] for token in sentence["tokens"]] == tokens
        for parse in sentence["parses"]:
            assert len(parse_tree(parse["tree"]).tokens()) == len(tokens)


@given(anything)
def test_text_comes_back_by_its_offsets(client: TestClient, text: str) -> None:
    answer = client.post(
        "/v1/parse",
        content=json.dumps({"text": text}),
        headers={"content-type": "application/json"},
    )
    if decided(answer):
        seen = set()
        for sentence in answer.json()["sentences"]:
            for token in sentence["tokens"]:
                assert token["text"] == text[token["start"] : token["end"]]
                seen.update(range(token["start"], token["end"]))
        assert [one for i, one in enumerate(text) if i not in seen and not one.isspace()] == []


@given(words)
def test_trees_answered_can_be_scored(client: TestClient, tokens: list[str]) -> None:
    answer = client.post("/v1/parse", json={"sentences": [{"tokens": tokens}]}).json()
    trees = [parse["tree"] for one in answer["sentences"] for parse in one["parses"]]
    scores = client.post("/v1/tree-probability", json={"trees": trees}).json()["trees"]
    for score, parse in zip(
        scores, [parse for one in answer["sentences"] for parse in one["parses"]], strict=True
    ):
        assert score["problem"] is None
        if parse["log_probability"] is not None:
            # the same sum in another order
            assert score["log_probability"] == pytest.approx(parse["log_probability"], abs=1e-6)


@given(st.text("()SNPab \n\\\u00a0", max_size=60))
def test_brackets_are_trees_or_have_a_place_where_they_are_not(
    client: TestClient, text: str
) -> None:
    answer = client.post("/v1/tree-probability", json={"trees": [text, "(N dog)"]})
    assert decided(answer)
    first, second = answer.json()["trees"]
    assert second["problem"] is None
    if first["problem"] is not None:
        check_words(Problem.model_validate(first["problem"]))
    if first["problem"] is not None and "limit" not in first["problem"]:
        line, column = first["problem"]["line"], first["problem"]["column"]
        assert 1 <= line <= text.count("\n") + 1
        assert 1 <= column <= len(text) + 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("text", "sentences", "tokens", "tags", "k", "id", "constraints", "spans"),
                    *("start", "end", "threshold", "trees", "x"),
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_gets_a_definite_answer(client: TestClient, value: object) -> None:
    for path in ("/v1/parse", "/v1/marginals", "/v1/tree-probability", "/v1/batch"):
        body = json.dumps(value)
        decided(client.post(path, content=body, headers={"content-type": "application/json"}))


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer_and_so_does_every_line(client: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    decided(client.post("/v1/parse", content=body, headers=headers))
    answer = client.post("/v1/batch", content=body)
    assert decided(answer)
    found = [BatchLine.model_validate_json(line) for line in answer.content.splitlines()]
    lines = body.count(b"\n") + (body[-1:] not in (b"", b"\n"))
    assert [one.line for one in found] == list(range(1, lines + 1))
    for one in found:
        if one.problem is not None:
            check_words(one.problem)


HOSTILE: dict[str, tuple[str, Callable[[int], object]]] = {
    "nested lists": ("/v1/parse", lambda n: b'{"text":' + b"[" * n + b"]" * n + b"}"),
    "unclosed lists": ("/v1/parse", lambda n: b"[" * n),
    "nested objects": ("/v1/parse", lambda n: b'{"a":' * n),
    "escaped quotes": ("/v1/parse", lambda n: b'{"text":"' + b'\\"' * n),
    "lists side by side": ("/v1/parse", lambda n: b"[" + b"[]," * n),
    "nested brackets": ("/v1/tree-probability", lambda n: {"trees": ["(S" * n + " a" + ")" * n]}),
    "unclosed brackets": ("/v1/tree-probability", lambda n: {"trees": ["(S " * n]}),
    "a wide node": ("/v1/tree-probability", lambda n: {"trees": ["(S " + "(N a)" * n + ")"]}),
    "one long token": ("/v1/parse", lambda n: {"sentences": [{"tokens": ["a" * n]}]}),
    "one long unknown word": ("/v1/parse", lambda n: {"sentences": [{"tokens": ["ab" * n]}]}),
    "many tokens": ("/v1/parse", lambda n: {"sentences": [{"tokens": ["a"] * n}]}),
    "text without an end": ("/v1/parse", lambda n: {"text": "dog " * n}),
    "apostrophes": ("/v1/parse", lambda n: {"text": "'" * n}),
    "full stops": ("/v1/parse", lambda n: {"text": "." * n}),
    "white space": ("/v1/parse", lambda n: {"text": " \n\t\u00a0" * n}),
    "faults": ("/v1/parse", lambda n: {"sentences": [{"tokens": [1] * n}]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_at_most_linearly_with_the_request(client: TestClient, name: str) -> None:
    path, make = HOSTILE[name]

    def seconds(n: int) -> float:
        body = make(n)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            answer = client.post(
                path, content=content, headers={"content-type": "application/json"}
            )
            best = min(best, time.process_time() - started)
            decided(answer)
        return best

    gc.freeze()  # the collector is not to look through all that other tests made
    try:
        # Ten times as much in ten times the time, and as much again for what the collector does
        # look through; quadratic would be a hundred times. 50 ms are for the request itself.
        assert seconds(100_000) <= 20 * seconds(10_000) + 0.05
    finally:
        gc.unfreeze()
