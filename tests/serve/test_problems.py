"""Every failure is one shape, says what was expected, what came, where and the cure."""

import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import LimitError, Stopped
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import ENGLISH
from lpcfg.protocol.schemas import MarginalsRequest, Problem, SentencesRequest, TreesRequest
from lpcfg.serve.http.problems import KINDS, MEDIA_TYPE
from lpcfg.serve.http.requests import json_depth
from lpcfg.serve.routes.inputs import sentence_of, sentences_of
from lpcfg.settings import Settings
from lpcfg.text import sentences as sentences_module
from lpcfg.text import tokenize as tokenize_module
from tests.serve.conftest import Serve


def problem(answer: Any, kind: str) -> Problem:
    """Return the answer's problem, which must be of this kind and of the one shape."""
    assert answer.headers["content-type"] == MEDIA_TYPE, answer.text
    found = Problem.model_validate_json(answer.content)
    assert found.type == f"/docs#problem-{kind}"
    assert found.title == KINDS[kind].title
    assert found.status == answer.status_code == KINDS[kind].status
    assert found.model_dump(exclude_none=True) == answer.json()
    return found


@pytest.mark.parametrize("length", ["0" * 4300 + "14", "9" * 4301])
def test_a_length_of_thousands_of_digits_is_refused(client: TestClient, length: str) -> None:
    headers = {"content-type": "application/json", "content-length": length}
    answer = client.post("/v1/parse", content='{"text": "Hi"}', headers=headers)
    assert "at most 18 digits, got 430" in problem(answer, "http").detail


@pytest.mark.parametrize(
    ("request_", "at", "detail"),
    [
        ({}, "", "expected either `text` or `sentences`, got neither: send one of them"),
        (
            {"text": "a", "sentences": []},
            "",
            "expected either `text` or `sentences`, got both: send one of them",
        ),
        ({"text": 3}, "/text", "expected a string, got 3: send one, in quotes"),
        ({"text": "a", "k": "2"}, "/k", 'expected a whole number, got "2": send digits alone'),
        ({"text": "a", "k": 0}, "/k", "expected at least 1, got 0: raise it"),
        (
            {"text": "a", "kk": 2},
            "/kk",
            "expected no member `kk`, got one: remove it, or correct its spelling",
        ),
        (
            {"text": "a", "objective": "best"},
            "/objective",
            "expected 'max-rule', 'max-marginal', 'max-product' or 'max-spans', got \"best\": "
            "use one of them",
        ),
        (
            {"text": "a", "model": ""},
            "/model",
            'expected at least one character, got "": fill it in, or leave the member out',
        ),
        ({"sentences": "a"}, "/sentences", 'expected a list, got "a": put it into [ and ]'),
        (
            {"sentences": [{}]},
            "/sentences/0/tokens",
            "expected a member `tokens`, got none: add it",
        ),
        (
            {"sentences": [["a"]]},
            "/sentences/0",
            'expected a sentence as a string, or an object like {"tokens": ["Cats", "sleep", "."]},'
            " got a list with 1 member: send that",
        ),
        (
            {"sentences": ["a", {"text": "a"}]},
            "/sentences/1",
            'expected a sentence as a string, or an object like {"tokens": ["Cats", "sleep", "."]},'
            " got an object with `text`: send one sentence as the string alone, or several as the "
            "`text` of /v1/parse",
        ),
        ({"sentences": [{"tokens": [1]}]}, "/sentences/0/tokens/0", "expected a string, got 1: "),
        (
            {"sentences": [{"tokens": [""]}]},
            "/sentences/0/tokens/0",
            'expected a word with no white space but single blanks inside, got "": send each word',
        ),
        (
            {"sentences": [{"tokens": ["a"], "tags": ["NN", None]}]},
            "/sentences/0/tags",
            "expected a tag or null for each token, got 2 tags for 1 token: send as many",
        ),
        (
            {"sentences": ["a", {"tokens": ["a"], "constraints": [{"start": 1, "end": 1}]}]},
            "/sentences/1/constraints/0",
            "expected start before end, got start 1 and end 1: `end` is the first token after",
        ),
        (
            {"sentences": [{"tokens": ["a"], "constraints": [{"start": 0, "end": 2}]}]},
            "/sentences/0/constraints/0/end",
            "expected a constraint within 1 token, got end 2: `start` and `end` count tokens",
        ),
        (
            {"sentences": [{"tokens": ["a"], "constraints": [[0, 1]]}]},
            "/sentences/0/constraints/0",
            'expected an object like {"start": 0, "end": 2, "label": "NP"}, got a list with 2 ',
        ),
        (
            {"sentences": [{"tokens": ["a"], "id": []}]},
            "/sentences/0/id",
            "expected a string or a whole number, got a list with 0 members: send one of them, or",
        ),
        (
            {"sentences": [{"tokens": ["a"], "id": True}]},
            "/sentences/0/id",
            "expected a string or a whole number, got true",
        ),
        ([], "", 'expected an object like {"text": "The cat sat."}, got a list with 0 members'),
        ({"text": "a", "model": "none"}, "/model", "expected one of the models small, got 'none'"),
    ],
)
def test_invalid_content_is_refused_with_expectation_and_cure(
    client: TestClient, request_: Any, at: str, detail: str
) -> None:
    found = problem(client.post("/v1/parse", json=request_), "content")
    assert found.detail.startswith(detail)
    assert found.at == at


@pytest.mark.parametrize(
    ("more", "at", "detail"),
    [
        ({"spans": [[0, 2]]}, "/spans/0", 'expected an object like {"start": 0, "end": 2}, got a '),
        ({"spans": [{"start": 2, "end": 1}]}, "/spans/0", "expected start before end, got start 2"),
        ({"spans": [{"start": "0", "end": 1}]}, "/spans/0/start", "expected a whole number, got "),
        ({"spans": [{"start": 0, "end": 9}]}, "/spans/0/end", "expected a span within 2 tokens, "),
        ({"threshold": 2}, "/threshold", "expected at most 1, got 2: lower it"),
        ({"threshold": "a"}, "/threshold", 'expected a number, got "a": send one, without quotes'),
        ({"raw": 1}, "/raw", "expected true or false, got 1: send one of them, without quotes"),
        ({"text": None}, "", "expected either `text` or `sentences`, got neither"),
        ({"text": ""}, "/text", "expected a sentence, got a text without words: send at least one"),
        ({"text": " \n"}, "/text", "expected a sentence, got a text without words: send at least"),
        (
            {"text": None, "sentences": ["a", "b"]},
            "/sentences",
            "expected just one sentence, got 2: ask for each by itself",
        ),
        ({"text": None, "sentences": []}, "/sentences", "expected just one sentence, got 0"),
    ],
)
def test_impossible_requests_for_marginals_are_refused(
    client: TestClient, more: dict[str, Any], at: str, detail: str
) -> None:
    found = problem(client.post("/v1/marginals", json={"text": "A dog", **more}), "content")
    assert found.detail.startswith(detail)
    assert found.at == at


@pytest.mark.parametrize("path", ["/v1/parse", "/v1/marginals"])
@pytest.mark.parametrize(
    ("more", "at", "detail"),
    [
        (
            {"constraints": [{"start": 0, "end": 1, "label": "nope"}]},
            "/constraints/0/label",
            "expected a label of the model's, got 'nope': use one of .*NP",
        ),
        (
            {"tags": [None, "nope"]},
            "/tags/1",
            "expected null or a tag of the model's, got 'nope': use",
        ),
        ({"tags": ["", "NN"]}, "/tags/0", "expected null or a tag .*, got '': use one of .*NN"),
    ],
)
def test_unknown_labels_and_tags_are_refused_with_the_known_ones(
    client: TestClient, path: str, more: dict[str, Any], at: str, detail: str
) -> None:
    sentence = {"tokens": ["The", "dog"], **more}
    found = problem(client.post(path, json={"sentences": [sentence]}), "content")
    assert re.match(detail, found.detail), found.detail
    assert found.at == "/sentences/0" + at
    (line,) = client.post("/v1/batch", json=sentence).text.splitlines()
    assert json.loads(line)["problem"] == {**found.model_dump(exclude_none=True), "at": at}


def test_a_text_without_sentences_is_empty_and_no_tokens_fail(
    client: TestClient,
) -> None:
    assert client.post("/v1/parse", json={"text": " "}).json()["sentences"] == []
    for sentence in (" ", {"tokens": []}):
        asked = {"sentences": [sentence]}
        parsed = client.post("/v1/parse", json=asked).json()["sentences"][0]
        marginals = client.post("/v1/marginals", json=asked).json()
        for answer in (parsed, marginals):
            assert answer["status"] == "failed"
            assert answer["reason"] == "there are no tokens: send at least one word"


def test_several_faults_are_reported_together(client: TestClient) -> None:
    found = problem(client.post("/v1/parse", json={"text": 1, "k": 0}), "content")
    assert [one.at for one in found.errors or ()] == ["/text", "/k"]
    assert found.detail == (found.errors or ())[0].detail


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b" ", "nothing: send JSON"),
        (b'{"text": "a"', r"something else \(EOF while parsing an object at line 1 column 12\): "),
        (b'{"text": "\xff"}', r"something else \(invalid unicode"),
        (b'{"text": "\\ud800"}', r"something else \(.*hex escape"),
        (b'{"text": "a", "k": NaN}', r"something else \(expected value at line 1 column 20\): "),
        (b'{"text": "a"} 1', r"something else \(trailing characters"),
    ],
)
def test_bodies_that_are_not_json_are_refused(client: TestClient, body: bytes, detail: str) -> None:
    headers = {"content-type": "application/json"}
    found = problem(client.post("/v1/parse", content=body, headers=headers), "content")
    assert re.match(f"expected JSON in UTF-8, got {detail}", found.detail), found.detail


@pytest.mark.parametrize("kind", ["", "text/plain", "application/jsonp"])
def test_json_needs_its_content_type(client: TestClient, kind: str) -> None:
    answer = client.post("/v1/parse", content=b'{"text": "a"}', headers={"content-type": kind})
    found = problem(answer, "media-type")
    assert re.search(f"content-type: application/json, got '{kind}'", found.detail)


def test_json_content_types_may_have_parameters(client: TestClient) -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    answer = client.post("/v1/parse", content=b'{"text": "A dog."}', headers=headers)
    assert answer.status_code == 200


def limited(answer: Any, limit: int, value: int, at: str | None, kind: str = "limit") -> str:
    found = problem(answer, kind)
    assert (found.limit, found.value, found.at) == (limit, value, at)
    assert f'"limit":{limit},"value":{value}' in answer.text  # no 200.0
    return found.detail


def test_every_exceeded_limit_is_named_with_its_value(serve: Serve) -> None:
    with serve(max_tokens=3, max_sentences=2, max_parses=4, max_json_depth=5) as client:

        def post(**request: Any) -> Any:
            return client.post("/v1/parse", json=request)

        detail = limited(post(text="The dog. The dog saw it."), 3, 5, "/text")
        assert "sentence, got 5 in the one that begins at 9: split it" in detail
        limited(post(sentences=["a", "a b c d"]), 3, 4, "/sentences/1")
        limited(post(sentences=[{"tokens": ["a"] * 4}]), 3, 4, "/sentences/0/tokens")
        limited(post(sentences=["a", "b", "c"]), 2, 3, "/sentences")
        assert "sentences in one request, got 3" in limited(
            post(text="It is. It is. It is."), 2, 3, "/text"
        )
        limited(post(text="a", k=5), 4, 5, "/k")
        limited(post(text=[[[[[[]]]]]]), 5, 7, "")
        limited(client.post("/v1/tree-probability", json={"trees": [""] * 3}), 2, 3, "/trees")
        answer = client.post("/v1/batch", content='{"tokens": ["a", "b", "c", "d"]}\n"a"')
        first, second = map(json.loads, answer.text.splitlines())
        assert (first["problem"]["limit"], first["problem"]["value"]) == (3, 4)
        assert second["sentence"]["tokens"]


def test_trees_have_limits_of_their_own(serve: Serve) -> None:
    with serve(max_tokens=3, max_tree_depth=5, max_tree_width=2) as client:
        trees = [
            "(S " + "(A a)" * 4 + ")",
            "(S " + "(A a)" * 3 + ")",
            "(A" * 6 + " a" + ")" * 6,
            "(S (A a) (S (A a) (S (A a) (A a))))",
        ]
        answer = client.post("/v1/tree-probability", json={"trees": trees})
        problems = [one["problem"] for one in answer.json()["trees"]]
    assert (problems[0]["limit"], problems[0]["value"], problems[0]["at"]) == (2, 4, "/trees/0")
    assert (problems[1]["limit"], problems[1]["value"]) == (2, 3)
    assert (problems[2]["limit"], problems[2]["value"], problems[2]["at"]) == (5, 6, "/trees/2")
    expected = "expected at most 5 nested brackets, got 6: leave this tree out"
    assert problems[2]["detail"] == expected
    assert problems[2]["type"] == "/docs#problem-limit"
    assert (problems[3]["limit"], problems[3]["value"]) == (3, 4)


def test_answers_have_a_limit(serve: Serve) -> None:
    body = {"sentences": ["The dog slept."] * 20, "k": 3}
    with serve(max_answer_bytes=10_000) as client:
        told = client.post("/v1/parse", json=body).json()
        assert (told["status"], told["limit"]) == (422, 10_000)
        assert told["value"] > 10_000
        few = {**body, "sentences": body["sentences"][:2]}
        assert client.post("/v1/parse", json=few).status_code == 200
        assert len(client.post("/v1/batch?k=3", content='"The dog slept."\n' * 20).text) > 10_000
    with serve(max_answer_bytes=200) as client:
        asked = {"text": "The old man saw a cat in the house.", "threshold": 0}
        assert client.post("/v1/marginals", json=asked).json()["limit"] == 200


def test_bodies_are_limited_whether_they_say_their_length_or_not(serve: Serve) -> None:
    with serve(max_body_bytes=100) as client:
        headers = {"content-type": "application/json"}
        body = b'{"text": "' + b"a" * 200 + b'"}'
        told = client.post("/v1/parse", content=body, headers=headers)
        assert limited(told, 100, len(body), "", "body-limit").startswith("expected a body of at")
        dripped = client.post(
            "/v1/parse", content=(body[i : i + 7] for i in range(0, 212, 7)), headers=headers
        )
        assert (problem(dripped, "body-limit").value or 0) > 100
        long = client.post("/v1/batch", content=b'"' + b"a " * 100 + b'"\n"It is."\n"' + b"b " * 99)
        first, second, third = map(json.loads, long.text.splitlines())
        assert (first["problem"]["limit"], first["problem"]["value"]) == (100, 202)
        assert second["sentence"]["tokens"]
        assert third["problem"]["value"] == 199


def test_unknown_paths_and_methods_are_refused(client: TestClient) -> None:
    problem(client.get("/v1/nothing"), "not-found")
    problem(client.post("/v1/parse/", json={}), "not-found")
    answer = client.get("/v1/parse")
    assert problem(answer, "method").detail == "expected POST, got GET /v1/parse: see /docs"
    assert answer.headers["allow"] == "POST"
    answer = client.post("/v1/models")
    assert problem(answer, "method").detail == "expected GET, HEAD, got POST /v1/models: see /docs"
    assert answer.headers["allow"] == "GET, HEAD"
    problem(client.get("/v1/models/none"), "not-found")
    problem(client.post("/v1/models/small/reload"), "not-found")


@pytest.mark.parametrize(
    ("query", "at", "detail"),
    [
        ("k=0", "#query/k", "expected at least 1, got "),
        ("k=a", "#query/k", 'expected a whole number, got "a": send digits alone'),
        ("k=" + "9" * 5000, "#query/k", 'expected a whole number, got "999'),
        ("kk=2", "#query/kk", "expected no member `kk`, got one: remove it"),
        ("objective=x", "#query/objective", "expected 'max-rule', 'max-marginal', "),
        ("model=", "#query/model", "expected at least one character"),
        ("model=none", "#query/model", "expected one of the models small, en-dep, got 'none'"),
    ],
)
def test_parameters_of_a_batch_are_checked(
    client: TestClient, query: str, at: str, detail: str
) -> None:
    found = problem(client.post(f"/v1/batch?{query}", content=b'"a"'), "content")
    assert found.detail.startswith(detail)
    assert found.at == at


def test_parameters_of_a_batch_have_limits_too(client: TestClient) -> None:
    limited(client.post("/v1/batch?k=99", content=b'"a"'), 50, 99, "#query/k")


def test_a_fault_of_the_service_is_a_problem_without_details(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret sentence")

    with serve() as client:
        monkeypatch.setattr("lpcfg.kinds.constituency.predict.Parser.marginals", broken)
        answer = client.post("/v1/marginals", json={"text": "A dog."})
        problem(answer, "fault")
        assert "secret" not in answer.text
        # one sentence at fault does not take the others in its batch with it
        real = Parser.predict

        def sometimes(parser: Parser, sentences: Any, *rest: Any) -> Any:
            if "secret" in sentences[0].tokens:
                raise RuntimeError("secret sentence")
            return real(parser, sentences, *rest)

        monkeypatch.setattr(Parser, "predict", sometimes)
        lines = "\n".join(['"A dog."', '"secret"', '"A cat."'] * 20)
        answers = client.post("/v1/batch", content=lines).text.splitlines()
        kinds = ["problem" if "problem" in json.loads(one) else "sentence" for one in answers]
        assert kinds == ["sentence", "problem", "sentence"] * 20
        assert not [one for one in answers if "secret" in one]


def test_json_is_measured_in_linear_passes() -> None:
    assert json_depth(b"") == 0
    assert json_depth(b'{"a": [1, {"b": "[[[[[["}]}') == 3
    assert json_depth(b'["\\"[[[[", "\\\\", [[[]]]]') == 4
    assert json_depth(b"[" * 100_000) == 100_000
    assert json_depth(b"[]" * 50_000) == 1
    assert json_depth(b'["' + b'\\"' * 50_000) == 1


@given(st.lists(st.sampled_from(list('[]{}",a\\')), max_size=30).map("".join))
def test_the_depth_of_json_is_that_found_character_by_character(body: str) -> None:
    depth = deepest = 0
    in_string = escaped = False
    for one in body:
        if in_string:
            in_string = escaped or one != '"'
            escaped = one == "\\" and not escaped
        else:
            in_string = one == '"'
            depth += (one in "[{") - (one in "]}")
            deepest = max(deepest, depth)
    assert json_depth(body.encode()) == deepest


def test_every_kind_is_explained_in_docs(client: TestClient) -> None:
    page = client.get("/docs").text
    for kind, known in KINDS.items():
        section = page.partition(f'id="problem-{kind}"')[2].partition("</section>")[0]
        assert f"{known.status} {known.title}" in section


MANY = 300_000


@pytest.mark.parametrize(
    ("path", "body", "at"),
    [
        ("parse", '{"sentences":[' + "{}," * MANY + "{}]}", "/sentences"),
        ("tree-probability", '{"trees":[' + "1," * MANY + "1]}", "/trees"),
        ("parse", '{"sentences":[{"tokens":[' + "1," * MANY + "1]}]}", "/sentences/0/tokens"),
        (
            "parse",
            '{"sentences":[{"tokens":["a"],"constraints":[' + "{}," * MANY + "{}]}]}",
            "/sentences/0/constraints",
        ),
    ],
)
def test_long_lists_are_refused_before_their_elements_are_validated(
    client: TestClient, path: str, body: str, at: str
) -> None:
    headers = {"content-type": "application/json"}
    found = problem(client.post(f"/v1/{path}", content=body, headers=headers), "limit")
    assert found.at == at
    assert found.errors is None


@pytest.mark.parametrize(
    ("model", "request_"),
    [
        (SentencesRequest, {"sentences": [{}] * MANY}),
        (SentencesRequest, {"sentences": [{"tokens": ["a"], "constraints": [{}] * 1000}]}),
        (MarginalsRequest, {"text": "a", "spans": [{}] * 1000}),
        (TreesRequest, {"trees": [1] * MANY}),
    ],
)
def test_validation_ends_at_the_first_wrong_element(
    model: type[BaseModel], request_: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError) as error:
        model.model_validate(request_)
    assert error.value.error_count() <= 2  # of one element


def test_unknown_members_are_told_up_to_sixteen() -> None:
    with pytest.raises(ValidationError) as error:
        SentencesRequest.model_validate({"text": "a", **{f"x{k}": 1 for k in range(MANY)}})
    assert error.value.error_count() == 16


def test_a_text_is_tokenized_no_further_than_its_first_long_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    find = tokenize_module._tokens

    def noted(*given: Any, **named: Any) -> Any:
        seen.append(1)
        return find(*given, **named)

    monkeypatch.setattr(tokenize_module, "_tokens", noted)
    with pytest.raises(LimitError, match="at most 200 tokens in a sentence"):
        sentences_of("dog " * 200_000, None, ENGLISH, Settings(), Stop())
    assert len(seen) == 1


def test_a_text_without_blanks_is_split_no_further_than_someone_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, stop = [], Stop()
    find = sentences_module._sentence_ends

    def noted(block: str, *rest: Any) -> Any:
        seen.append(len(block))
        stop.cancel()
        return find(block, *rest)

    monkeypatch.setattr(sentences_module, "_sentence_ends", noted)
    with pytest.raises(Stopped):
        sentences_of("``" * 450_000, None, ENGLISH, Settings(), stop)
    assert len(seen) <= 2


def test_tokenizing_stops_when_nobody_waits_any_more() -> None:
    stop = Stop()
    stop.cancel()
    with pytest.raises(Stopped):
        sentences_of("The dog slept. " * 100, None, ENGLISH, Settings(), stop)


def test_a_megabyte_for_one_sentence_is_not_tokenized_to_its_end() -> None:
    with pytest.raises(LimitError) as error:
        sentence_of("dog " * 200_000, ENGLISH, Settings(), "/sentences/0")
    assert error.value.value == 2000
