"""Every endpoint answers what the parser says, in the shapes the schemas document."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from lpcfg.kinds.constituency.answer import analysis_json, marginals_json, tree_probability_json
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Constraint, Sentence
from lpcfg.protocol.schemas import (
    BatchLine,
    MarginalsResponse,
    ModelDetails,
    Models,
    ParseResponse,
    TreesResponse,
)
from lpcfg.serve.app import create_app
from lpcfg.settings import Settings
from lpcfg.trees.brackets import parse_tree, read
from lpcfg.trees.normalize import normalize
from tests.serve.conftest import Serve, wait_until_ready

MODELS = Path(__file__).resolve().parents[2] / "model_store"
TEXT = "The dog saw a cat. 😀 It ran away!\n\nThe cat (a dog) slept."


def parsed(client: TestClient, **request: Any) -> ParseResponse:
    answer = client.post("/v1/parse", json=request)
    assert answer.status_code == 200, answer.text
    return ParseResponse.model_validate_json(answer.content)


def test_text_is_parsed_and_offsets_are_code_points(client: TestClient) -> None:
    found = parsed(client, text=TEXT)
    assert [one.text for one in found.sentences] == [
        "The dog saw a cat.",
        "😀 It ran away!",
        "The cat (a dog) slept.",
    ]
    for sentence in found.sentences:
        assert sentence.text == TEXT[sentence.start : sentence.end]
        for token in sentence.tokens:
            assert token.text == TEXT[token.start : token.end]
        for parse in sentence.parses:
            tree = parse_tree(parse.tree)
            assert len(tree.tokens()) == len(sentence.tokens)
            assert [one.tag for one in sentence.tokens] == [leaf.label for leaf in tree.leaves()]
            for one in parse.constituents:
                assert one.start_char == sentence.tokens[one.start].start
                assert one.end_char == sentence.tokens[one.end - 1].end


SLEPT = "(S (NP (DT The) (NN cat)) (VP (VBD slept)) (. .))"
ANSWERS: list[tuple[str, dict[str, Any], type[BaseModel]]] = [
    ("/v1/parse", {"text": TEXT, "k": 2}, ParseResponse),
    ("/v1/parse", {"sentences": [{"tokens": [], "id": 7}, {"tokens": ["dog"]}]}, ParseResponse),
    ("/v1/marginals", {"text": "The dog saw a cat."}, MarginalsResponse),
    ("/v1/marginals", {"sentences": [{"tokens": []}]}, MarginalsResponse),
    ("/v1/tree-probability", {"trees": ["(S (NN x))", SLEPT]}, TreesResponse),
]


@pytest.mark.parametrize(("path", "asked", "schema"), ANSWERS)
def test_answers_have_all_members_of_their_schema_and_no_others(
    client: TestClient, path: str, asked: dict[str, Any], schema: type[BaseModel]
) -> None:
    """Reading an answer by its schema drops members it does not know, and adds absent ones."""
    answer = client.post(path, json=asked).json()
    assert schema.model_validate(answer).model_dump(mode="json") == answer


def test_the_same_sentence_with_other_options_is_another_answer(client: TestClient) -> None:
    """All of these are answered from the cache the second time."""
    tokens = ["The", "dog", "saw", "a", "cat", "with", "a", "telescope", "."]
    asked: list[dict[str, Any]] = [
        {},
        {"k": 3},
        {"objective": "max-product"},
        {"objective": "max-product", "k": 3},
    ]
    tags = ["DT", "NN", "VBD", "DT", "NN", "IN", "DT", "NN", "."]
    for given in ({"tokens": tokens}, {"tokens": tokens, "tags": tags}):
        first = [parsed(client, sentences=[given], **options) for options in asked]
        again = [parsed(client, sentences=[given], **options) for options in asked]
        assert again == first
        assert [len(one.sentences[0].parses) for one in first] == [1, 3, 1, 3]
        scores = {one.sentences[0].parses[0].score for one in first}
        assert len(scores) == 2  # one an objective


def test_an_answer_from_the_cache_has_the_id_it_was_asked_with(client: TestClient) -> None:
    ids = [
        parsed(client, sentences=[{"tokens": ["A", "dog", "ran"], "id": name}]).sentences[0].id
        for name in ("one", 2, "three")
    ]
    assert ids == ["one", 2, "three"]
    service = client.app.state.service  # type: ignore[attr-defined]
    assert service.cache.hits >= 2


def test_answers_are_the_parsers_to_the_last_digit(client: TestClient, parser: Parser) -> None:
    given = [
        Sentence(("The", "dog", "saw", "a", "cat", "."), id="one"),
        Sentence(("a", "dog"), tags=("DT", None), id=2),
        Sentence(("The", "cat", "slept"), constraints=(Constraint(0, 2, "NP"),)),
        Sentence(()),
        Sentence((")", "(", "the")),
    ]
    request = {
        "sentences": [
            {"tokens": ["The", "dog", "saw", "a", "cat", "."], "id": "one"},
            {"tokens": ["a", "dog"], "tags": ["DT", None], "id": 2},
            {
                "tokens": ["The", "cat", "slept"],
                "constraints": [{"start": 0, "end": 2, "label": "NP"}],
            },
            {"tokens": []},
            {"tokens": [")", "(", "the"]},
        ],
        "k": 3,
        "objective": "max-marginal",
    }
    answer = client.post("/v1/parse", json=request).json()
    options = ParseOptions(k=3, objective="max-marginal")
    assert answer["sentences"] == [analysis_json(one) for one in parser.predict(given, options)]
    reference = parser.reference
    assert reference is not None
    assert answer["model"] == {
        "name": reference.name,
        "version": reference.version,
        "hash": reference.hash,
    }
    # the second time out of the cache, under other ids
    request["sentences"][0]["id"] = None  # type: ignore[index]
    again = client.post("/v1/parse", json=request).json()
    assert again["sentences"][0].pop("id") is None
    assert again["sentences"][0].items() <= answer["sentences"][0].items()
    assert again["sentences"][1:] == answer["sentences"][1:]


def test_a_failed_sentence_is_an_answer_among_others(client: TestClient) -> None:
    found = parsed(client, sentences=["", "The dog slept."])
    assert [one.status for one in found.sentences] == ["failed", "parsed"]
    assert found.sentences[0].reason == "there are no tokens: send at least one word"


@pytest.mark.parametrize(
    "more",
    [{}, {"threshold": 0.2}, {"spans": [{"start": 0, "end": 2}]}, {"raw": True, "threshold": 0.0}],
)
def test_marginals_are_the_parsers(
    client: TestClient, parser: Parser, more: dict[str, Any]
) -> None:
    answer = client.post(
        "/v1/marginals", json={"sentences": [{"tokens": ["The", "dog", "slept"], "id": 7}], **more}
    )
    found = MarginalsResponse.model_validate_json(answer.content)
    spans = [(one["start"], one["end"]) for one in more["spans"]] if "spans" in more else None
    raw = more.get("raw", False)
    expected = parser.marginals(
        Sentence(("The", "dog", "slept")),
        threshold=more.get("threshold", 0.01),
        spans=spans,
        raw=raw,
        calibrated=not raw,
    )
    assert marginals_json(expected).items() <= answer.json().items()
    assert found.id == 7
    assert [token.text for token in found.tokens] == ["The", "dog", "slept"]
    assert found.spans


@pytest.mark.parametrize("rescore", [True, False])
def test_parse_and_marginals_agree_on_constituents_of_real_sentences(
    serve: Serve, treebanks: Path, rescore: bool
) -> None:
    """On every fourth sentence of gum/dev, many of them with a label twice in a chain."""
    trees = [tree for tree in map(normalize, read(treebanks / "gum" / "dev.mrg")) if tree]
    sentences = [{"tokens": tree.tokens()} for tree in trees[::4]]
    compared = 0
    with serve(model="en", model_store=str(MODELS)) as client:
        found = parsed(client, sentences=sentences, rescore=rescore).sentences
        for sentence, one in zip(sentences, found, strict=True):
            asked = {"sentences": [sentence], "threshold": 0.0, "rescore": rescore}
            spans = client.post("/v1/marginals", json=asked).json()["spans"]
            shares = {(it["label"], it["start"], it["end"]): it["probability"] for it in spans}
            assert len(shares) == len(spans)
            for node in one.parses[0].constituents:
                told = shares[node.label, node.start, node.end]
                # both are sums of the same float64 numbers, perhaps in another order
                assert told == pytest.approx(node.probability, abs=1e-6)
                compared += 1
    assert compared > 3000


def test_trees_are_scored_beside_others_with_bad_brackets(
    client: TestClient, parser: Parser
) -> None:
    good = "(S (NP (DT The) (NN dog)) (VP (VBD slept)))"
    unknown = "(S (VP (VBD slept)) (NP (DT The) (NN dog)))"
    answer = client.post("/v1/tree-probability", json={"trees": [good, "(S (NP", unknown, ""]})
    found = TreesResponse.model_validate_json(answer.content).trees
    for place, text in ((0, good), (2, unknown)):
        expected = tree_probability_json(parser.tree_probability([parse_tree(text)])[0])
        assert expected.items() <= answer.json()["trees"][place].items()
        assert found[place].problem is None
    assert found[0].sign == 1
    assert found[2].log_probability is None
    assert found[2].sign == 0
    assert found[2].reason == ("the grammar does not have `(S (VP VBD) NP)` over “slept The dog”")
    problem = found[1].problem
    assert problem is not None
    assert (problem.line, problem.column, problem.at) == (1, 7, "/trees/1")
    assert found[3].problem is not None


def test_trees_are_normalized_before_scoring_and_missing_rules_are_named(
    client: TestClient,
) -> None:
    raw = "(ROOT (S (NP-SBJ (DT The) (NN dog)) (VP (VBD slept) (NP (-NONE- *)))))"
    plain = "(S (NP (DT The) (NN dog)) (VP (VBD slept)))"
    odd = "(S (VP (VBD slept)) (NP (DT The) (NN dog)))"
    trees = [raw, plain, odd, "(S (NP (-NONE- *)))"]
    answer = client.post("/v1/tree-probability", json={"trees": trees})
    like_raw, like_plain, lacking, nothing = TreesResponse.model_validate_json(answer.content).trees
    assert like_raw == like_plain
    assert (like_raw.tree, like_raw.missing) == (plain, [])
    assert (lacking.tree, lacking.missing) == (odd, [0])
    assert nothing.problem is not None
    assert nothing.problem.detail == (
        "expected a tree that has words, got one of traces alone: leave it out"
    )
    assert nothing.problem.at == "/trees/3"


def test_batch_answers_each_line_in_order(client: TestClient) -> None:
    lines = [
        '"The dog slept."',
        '{"tokens": ["The", "cat"], "id": 5}',
        "",
        '{"token": ["The"]}',
        "{nothing",
        '{"text": "A cat. A dog."}',
        '{"tokens": ["The"], "constraints": [{"start": 0, "end": 2}]}',
        '"A cat."',
    ]
    answer = client.post("/v1/batch?k=2", content="\n".join(lines))
    assert answer.headers["content-type"] == "application/x-ndjson"
    found = [BatchLine.model_validate_json(line) for line in answer.text.splitlines()]
    assert [one.line for one in found] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [one.line for one in found if one.problem is None] == [1, 2, 8]
    problems = [one.problem for one in found if one.problem is not None]
    assert [one.at for one in problems] == ["", "/tokens", "", "", "/constraints/0/end"]
    assert problems[0].detail == "expected a sentence as JSON, got a blank line: leave it out"
    assert "got an object with `text`: send one sentence as the string alone" in problems[3].detail
    assert found[1].sentence is not None
    assert found[1].sentence.id == 5
    single = parsed(client, sentences=["The dog slept."], k=2)
    assert found[0].sentence == single.sentences[0]
    assert {one.model.hash for one in found} == {single.model.hash}


@pytest.mark.parametrize(
    ("body", "lines"),
    [("", 0), ("\n", 1), ("\n\n", 2), (" ", 1), ('"A"', 1), ('"A"\n', 1), ('"A"\r\n\r\n', 2)],
)
def test_batch_has_as_many_answers_as_lines(client: TestClient, body: str, lines: int) -> None:
    answers = client.post("/v1/batch", content=body).text.splitlines()
    assert [json.loads(one)["line"] for one in answers] == list(range(1, lines + 1))


def test_batch_in_one_byte_chunks_is_the_same_batch(client: TestClient) -> None:
    body = '"The dog slept."\n\n"😀 A cat."'.encode()
    whole = client.post("/v1/batch", content=body).content
    dripped = client.post("/v1/batch", content=(body[i : i + 1] for i in range(len(body))))
    assert dripped.content == whole
    assert whole.count(b"\n") == 3


def test_models_list_their_versions_and_labels(client: TestClient, parser: Parser) -> None:
    one, beside = Models.model_validate_json(client.get("/v1/models").content).models
    assert (beside.name, beside.kind, beside.default) == ("en-dep", "dependencies", True)
    details = ModelDetails.model_validate_json(client.get("/v1/models/small").content)
    assert details.model_dump(exclude={"facts"}) == one.model_dump()
    assert (one.kind, one.default) == ("constituency", True)
    assert one.labels is not None
    assert one.tags is not None
    assert one.rules == len(parser.model.grammar.rules)
    assert "NP" in one.labels
    assert "NN" in one.tags
    assert not [label for label in (*one.labels, *one.tags) if "@" in label or "|" in label]
    assert details.facts["sizes"]["trees"] == 64


def test_a_model_is_named_with_or_without_its_version(client: TestClient) -> None:
    for name in (None, "small", "small@1"):
        assert parsed(client, text="Yes.", model=name).model.version == 1
    answer = client.post("/v1/parse", json={"text": "Yes.", "model": "small@2"})
    assert answer.status_code == 422
    assert re.search("expected version 1 of small, .*got 'small@2'", answer.json()["detail"])
    assert answer.json()["at"] == "/model"


def test_several_models_are_served(serve: Serve, store: Any) -> None:
    from lpcfg.training.config import TrainingConfig, member
    from lpcfg.training.pipeline import train_and_publish
    from tests.serve.conftest import TREES

    config = TrainingConfig(members=(member("counts"),))
    train_and_publish(TREES, config, store=store, name="counts")
    with serve(models="counts") as client:
        names = [one["name"] for one in client.get("/v1/models").json()["models"]]
        assert names == ["small", "counts", "en-dep"]
        hashes = {parsed(client, text="The dog.", model=name).model.hash for name in names[:2]}
        assert len(hashes) == 2
        assert client.get("/v2/models/counts/ready").json() == {"name": "counts", "ready": True}
        assert client.get("/v2/models/other/ready").status_code == 404


def test_health_metrics_and_the_description(client: TestClient) -> None:
    assert client.get("/v2/health/live").json() == {"live": True}
    parsed(client, text="The dog slept.")
    metrics = client.get("/metrics").text
    for expected in (
        r'lpcfg_requests_total\{endpoint="/v1/parse",status="200"\} [1-9]',
        r'lpcfg_request_seconds_bucket\{endpoint="/v1/parse",le="\+Inf"\} [1-9]',
        r'lpcfg_sentences_total\{endpoint="/v1/parse"\} [1-9]',
        r'lpcfg_tokens_total\{endpoint="/v1/parse"\} [1-9]',
        r"lpcfg_queue_requests 0\.0",
        r"lpcfg_queue_seconds 0\.0",
        r"lpcfg_refused",
        r"lpcfg_cache_hits",
        r"lpcfg_cache_bytes [1-9]",
        r'lpcfg_model_info\{hash="[0-9a-f]{64}",name="small",version="1"\} 1\.0',
        r"process_resident_memory_bytes [1-9]",
    ):
        assert re.search(expected, metrics), expected


def test_docs_show_every_endpoint_and_load_nothing_from_elsewhere(
    client: TestClient,
) -> None:
    answer = client.get("/docs")
    described = client.get("/openapi.json").json()
    page = answer.text
    for path, methods in described["paths"].items():
        for method in methods:
            section = page.partition(f"<code>{method.upper()} {path}</code>")[2]
            assert "<pre" in section.partition("</section>")[0], path
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert not re.findall(r'(?:src|href)="(?!/|#)', page)
    assert re.findall("<script[^>]*>", page) == ['<script type="module" src="/docs.js">']
    assert "style=" not in page
    for name in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{name}"' in page


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/docs", "/openapi.json", "/docs.css", "/metrics", "/v1/models", "/v1/models/small"),
        *("/v2/health/live", "/v2/health/ready", "/v2/models/small/ready", "/nope", "/v1/parse"),
    ],
)
def test_head_answers_as_get_does_without_the_body(client: TestClient, path: str) -> None:
    head, got = client.head(path), client.get(path)
    assert head.status_code == got.status_code
    assert head.content == b""
    assert head.headers["content-type"] == got.headers["content-type"]
    if path != "/metrics":  # whose numbers grow
        assert int(head.headers["content-length"]) == len(got.content)


def test_docs_say_what_offsets_count(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "count Unicode code points" in page
    assert "Array.from(text).slice(start, end)" in page
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name, member in (
        ("TokenAnswer", "start"),
        ("PlainToken", "end"),
        ("SentenceAnswer", "start"),
        ("ConstituentAnswer", "end_char"),
    ):
        assert "code points" in schemas[name]["properties"][member]["description"]


def test_request_ids_and_traces_are_carried_on(client: TestClient) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    answer = client.get(
        "/v2/health/live",
        headers={"X-Request-ID": "mine-1", "traceparent": f"00-{trace}-00f067aa0ba902b7-01"},
    )
    assert answer.headers["x-request-id"] == "mine-1"
    assert re.fullmatch(rf"00-{trace}-[0-9a-f]{{16}}-01", answer.headers["traceparent"])
    fresh = client.get(
        "/v2/health/live", headers={"X-Request-ID": "a b", "traceparent": "00-" + "0" * 32}
    )
    assert re.fullmatch("[0-9a-f]{32}", fresh.headers["x-request-id"])
    assert re.fullmatch(r"00-(?!0{32})[0-9a-f]{32}-[0-9a-f]{16}-00", fresh.headers["traceparent"])


def test_the_page_is_served_with_its_types_and_asked_for_again(client: TestClient) -> None:
    answer = client.get("/docs.css")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get("/docs.css", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for path in ("/../app.py", "/%2e%2e/app.py", "/app.py", "/docs.css/"):
        assert client.get(path).status_code == 404, path


def test_numbers_come_back_as_they_were_computed(client: TestClient, parser: Parser) -> None:
    answer = client.post("/v1/parse", json={"sentences": ["The dog slept ."]})
    text = re.search(r'"log_probability":(-[0-9.]+)', answer.text)
    assert text is not None
    expected = parser.parse([Sentence(("The", "dog", "slept", "."))])[0].log_probability
    assert json.loads(text[1]) == expected


def test_metrics_tell_whether_the_service_is_ready(store: Path) -> None:
    app = create_app(Settings(model="small", model_store=str(store)))
    service = app.state.service
    assert "\nlpcfg_ready 0.0\n" in service.metrics.text(service.models).decode()
    with TestClient(app) as client:
        wait_until_ready(client)
        assert "\nlpcfg_ready 1.0\n" in client.get("/metrics").text
        service.drain(1.0)
        assert "\nlpcfg_ready 0.0\n" in client.get("/metrics").text


def test_large_answers_are_compressed_for_who_asks(client: TestClient) -> None:
    request = {"sentences": ["The dog saw a cat."] * 20}
    plain = client.post("/v1/parse", json=request, headers={"accept-encoding": "identity"})
    small = client.post("/v1/parse", json=request, headers={"accept-encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert small.json() == plain.json()
    assert "content-encoding" not in plain.headers
    assert int(small.headers["content-length"]) * 4 < int(plain.headers["content-length"])


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("br, GZip;q=0.5", True),
        ("gzip ; q=1", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("x-gzip", False),
        ("", False),
    ],
)
def test_compression_follows_the_weights_of_the_client(
    client: TestClient, accepted: str, compressed: bool
) -> None:
    request = {"sentences": ["The dog saw a cat."] * 20}
    answer = client.post("/v1/parse", json=request, headers={"accept-encoding": accepted})
    assert answer.status_code == 200
    assert ("content-encoding" in answer.headers) is compressed


def test_bodies_may_be_compressed_within_the_limit(serve: Serve) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    with serve(max_body_bytes=1000) as client:

        def post(body: bytes, **more: str) -> tuple[int, str]:
            answer = client.post("/v1/parse", content=body, headers={**headers, **more})
            return answer.status_code, answer.json().get("type", "")

        assert post(gzip.compress(b'{"text": "It is."}'))[0] == 200
        bomb = gzip.compress(b'{"text": "' + b"a" * 100_000 + b'"}')
        assert len(bomb) < 1000
        assert post(bomb) == (413, "/docs#problem-body-limit")
        assert post(b"{}") == (422, "/docs#problem-content")
        assert post(b"{}", **{"content-encoding": "br"}) == (415, "/docs#problem-media-type")


def test_pages_of_other_sites_may_ask_where_they_are_named(serve: Serve) -> None:
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    with serve(cors_origins=("https://a.example",)) as client:
        assert client.options("/v1/parse", headers=asked).status_code == 200
        answer = client.post("/v1/parse", json={"text": "It is."}, headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        other = client.get("/v1/models", headers={"origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers
    with serve() as client:
        assert client.options("/v1/parse", headers=asked).status_code == 405
