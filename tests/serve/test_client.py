"""The Python client: typed answers, problems as errors, and when it tries again."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from urllib.parse import unquote

import httpx
import pytest
from benchmarks.serving import Process
from scripts.unasync import SOURCE, TARGET, synchronous

from lpcfg import AsyncClient, Client, ServiceError
from lpcfg.base.errors import InputError
from lpcfg.protocol.schemas import ConstraintInput, Models, TokensInput


def url(process: Process) -> str:
    return f"http://127.0.0.1:{process.port}"


def test_answers_are_typed_and_sync_and_async_agree(process: Process) -> None:
    given = TokensInput(
        tokens=["The", "dog"], id="x", constraints=[ConstraintInput(start=0, end=2, label="NP")]
    )

    async def asynchronously() -> list[object]:
        async with AsyncClient(url(process)) as client:
            return [
                await client.parse("The dog slept. It ran."),
                await client.parse(["The dog.", given], k=2, objective="max-product"),
                await client.marginals(given, spans=[(0, 2)], threshold=0.0),
                await client.tree_probability(["(NP (DT The) (NN dog))", "(NP"]),
                [line async for line in client.batch(["The dog."] * 70 + [given])],
                await client.models(),
                await client.model("small"),
            ]

    with Client(url(process)) as client:
        text = client.parse("The dog slept. It ran.")
        both = client.parse(["The dog.", given], k=2, objective="max-product")
        marginals = client.marginals(given, spans=[(0, 2)], threshold=0.0)
        trees = client.tree_probability(["(NP (DT The) (NN dog))", "(NP"])
        lines = list(client.batch(["The dog."] * 70 + [given]))
        models, model = client.models(), client.model("small")
    assert [one.text for one in text.sentences] == ["The dog slept.", "It ran."]
    assert both.sentences[1].id == "x"
    assert both.sentences[1].parses[0].constituents[0].label == "NP"
    assert {(span.start, span.end) for span in marginals.spans} == {(0, 2)}
    assert trees.trees[0].sign == 1
    assert trees.trees[1].problem is not None
    assert [line.line for line in lines] == list(range(1, 72))
    assert lines[70].sentence is not None
    assert lines[70].sentence.id == "x"
    assert models.models[0].name == model.name == "small"
    assert asyncio.run(asynchronously()) == [text, both, marginals, trees, lines, models, model]


def test_both_clients_compare_sentences(process: Process) -> None:
    pairs = [("The big cat.", "A large cat."), ("red", "nothing")]

    async def asynchronously() -> object:
        async with AsyncClient(url(process)) as client:
            return await client.similarity(pairs)

    with Client(url(process)) as client:
        answer = client.similarity(pairs)
    assert answer.scale == [0, 5]
    assert [token.text for token in answer.pairs[1].second.tokens] == ["nothing"]
    assert {(one.first, one.second) for one in answer.pairs[0].alignments} == {(1, 1), (2, 2)}
    assert asyncio.run(asynchronously()) == answer


def test_sentences_are_given_as_strings_tokens_or_dicts(process: Process) -> None:
    tokens = ["The", "dog"]
    with Client(url(process)) as client:
        forms = [tokens, tuple(tokens), {"tokens": tokens}, TokensInput(tokens=tokens)]
        answers = client.parse(forms).sentences
        assert len({one.model_dump_json() for one in answers}) == 1
        marginals = [client.marginals(one) for one in forms]
        assert marginals == [marginals[0]] * len(forms)
        (line,) = client.batch([{"tokens": tokens, "id": "x"}])
        assert line.sentence is not None
        assert line.sentence.id == "x"
        for wrong in (None, 5, b"The dog", {"text": "The dog"}):
            with pytest.raises(InputError, match="expected text as a string, or a list of sent"):
                client.parse(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="expected a sentence as a string, a list of tokens"):
            client.parse(["The dog", 5])  # type: ignore[list-item]


def test_a_problem_is_an_error_that_says_what_the_service_said(process: Process) -> None:
    with Client(url(process)) as client:
        expected = "A limit .* is exceeded: expected `k` of at most 50, got 99.* \\(at /k\\)"
        with pytest.raises(ServiceError, match=expected) as error:
            client.parse("The dog.", k=99)
        assert error.value.problem is not None
        assert (error.value.problem.status, error.value.problem.limit) == (422, 50)
        with pytest.raises(ServiceError, match="Nothing found at this path: expected one of"):
            client.model("none")


class Answers:
    """A transport that answers as told, one after the other, and counts."""

    def __init__(self, *answers: httpx.Response | type[httpx.TransportError]) -> None:
        self.left = list(answers)
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        answer = self.left.pop(0)
        if isinstance(answer, httpx.Response):
            return answer
        raise answer("broken", request=request)


def ready() -> httpx.Response:
    return httpx.Response(200, json={"models": []})


def busy(seconds: str = "0") -> httpx.Response:
    return httpx.Response(503, headers={"retry-after": seconds})


def around(*seconds: float) -> list[object]:
    """Expect pauses of so many seconds, a quarter longer at most."""
    return [pytest.approx(1.125 * one, rel=0.12) for one in seconds]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    # Only for the client: a service in a thread of these tests goes on sleeping.
    monkeypatch.setattr("lpcfg.client.synchronous.time", SimpleNamespace(sleep=slept.append))
    monkeypatch.setattr("lpcfg.client.asynchronous.asyncio", SimpleNamespace(sleep=sleep))
    return slept


def models_of(answers: Answers, retries: int) -> object:
    """Ask both the synchronous and the asynchronous client."""
    with Client(retries=retries, transport=httpx.MockTransport(answers)) as client:
        return client.models()


def models_async(answers: Answers, retries: int) -> object:
    async def ask() -> object:
        transport = httpx.MockTransport(answers)
        async with AsyncClient(retries=retries, transport=transport) as client:
            return await client.models()

    return asyncio.run(ask())


both = pytest.mark.parametrize("ask", [models_of, models_async])


@both
def test_the_client_retries_within_its_limits(
    ask: Callable[[Answers, int], object], pauses: list[float]
) -> None:
    answers = Answers(httpx.ConnectError, busy("3"), httpx.ReadError, httpx.Response(502), ready())
    assert ask(answers, 4) == Models(models=[])
    assert answers.asked == 5
    assert [one for one in pauses if one] == around(0.1, 3.0, 0.4, 0.8)


@both
def test_the_client_never_pauses_much_longer_than_ten_seconds(
    ask: Callable[[Answers, int], object], pauses: list[float]
) -> None:
    lost = [httpx.ConnectError] * 9
    assert ask(Answers(busy("3600"), *lost, ready()), 10) == Models(models=[])
    waited = [one for one in pauses if one]
    assert waited == around(10.0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0)


@both
def test_the_client_raises_the_last_problem_after_its_retries(
    ask: Callable[[Answers, int], object], pauses: list[float]
) -> None:
    refusal = httpx.Response(
        503,
        headers={"content-type": "application/problem+json"},
        json={"type": "t", "title": "Busy", "status": 503, "detail": "come back"},
    )
    with pytest.raises(ServiceError, match="Busy: come back"):
        ask(Answers(refusal, refusal), 1)
    with pytest.raises(ServiceError, match="got ConnectError in 2 attempts: check that the"):
        ask(Answers(httpx.ConnectError, httpx.ConnectError), 1)
    page = httpx.Response(404, text="<html>", headers={"content-type": "text/html"})
    with pytest.raises(ServiceError, match=r"got 404 text/html: check the address"):
        ask(Answers(page), 3)
    assert len(pauses) == 2


def quota(seconds: str) -> httpx.Response:
    return httpx.Response(429, headers={"retry-after": seconds})


@both
def test_a_used_up_quota_is_waited_for_if_it_returns_soon(
    ask: Callable[[Answers, int], object], pauses: list[float]
) -> None:
    assert ask(Answers(quota("3"), ready()), 4) == Models(models=[])
    assert [one for one in pauses if one] == around(3.0)
    answers = Answers(quota("3600"))
    with pytest.raises(ServiceError, match="got 429"):
        ask(answers, 4)
    assert answers.asked == 1


@both
def test_pauses_may_be_asked_for_as_dates(
    ask: Callable[[Answers, int], object], pauses: list[float]
) -> None:
    past, none = busy("Wed, 21 Oct 2015 07:28:00 GMT"), busy("soon")
    assert ask(Answers(past, none, ready()), 4) == Models(models=[])
    assert [one for one in pauses if one] == around(0.2)


@both
@pytest.mark.parametrize("status", [200, 422])
def test_an_answer_of_something_else_is_an_error_of_the_service(
    ask: Callable[[Answers, int], object], status: int
) -> None:
    headers = {"content-type": "application/problem+json" if status == 422 else "text/html"}
    page = httpx.Response(status, text="<html>", headers=headers)
    with pytest.raises(ServiceError, match=f"expected .* of the service at .*, got {status} "):
        ask(Answers(page), 0)


def test_missing_answers_of_a_batch_are_noticed() -> None:
    model = {"name": "a", "version": 1, "hash": "x"}
    problem = {"type": "t", "title": "t", "status": 503, "detail": "d"}
    line = {"line": 1, "model": model, "problem": problem}

    def short(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=line)

    async def asynchronously() -> None:
        transport = httpx.MockTransport(short)
        async with AsyncClient(transport=transport) as client:
            lines = client.batch(["a", "b", "c"])
            found.append((await anext(lines)).line)
            await anext(lines)

    found: list[int] = []
    expected = "expected answers to 3 lines from line 1 on, got 1: the service ended the batch"
    with Client(transport=httpx.MockTransport(short)) as client:
        lines = client.batch(["a", "b", "c"])
        found.append(next(lines).line)
        with pytest.raises(ServiceError, match=expected):
            next(lines)
    with pytest.raises(ServiceError, match=expected):
        asyncio.run(asynchronously())
    assert found == [1, 1]


@pytest.mark.parametrize("name", ["../../metrics", "en/reload", "a b", "é", "en?x=1", "en#y"])
def test_names_of_models_are_one_step_of_the_path(name: str) -> None:
    asked: list[str] = []

    def noted(request: httpx.Request) -> httpx.Response:
        asked.append(unquote(request.url.raw_path.decode().removeprefix("/v1/models/")))
        assert request.url.raw_path.count(b"/") == 3
        return httpx.Response(404)

    with Client(transport=httpx.MockTransport(noted)) as client, pytest.raises(ServiceError):
        client.model(name)
    assert asked == [name]


def test_the_synchronous_client_is_what_make_format_writes() -> None:
    written = synchronous(SOURCE.read_text(encoding="utf-8"))
    assert TARGET.read_text(encoding="utf-8") == written, "run `make format`"


def test_any_kind_of_model_is_asked_by_its_command(process: Process) -> None:
    with Client(url(process)) as client:
        (told,) = client.predict("parse", "The dog.", k=1)["sentences"]
        assert told == client.parse("The dog.").sentences[0].model_dump()
        with pytest.raises(ServiceError, match="Nothing found at this path"):
            client.predict("no such", "The dog.")


def test_wrong_options_are_refused_before_they_are_sent() -> None:
    with Client("http://127.0.0.1:1", retries=0) as client:
        with pytest.raises(InputError, match="expected `k` as a whole number of at least 1"):
            client.parse("The dog.", k=0)
        with pytest.raises(InputError, match="did you mean `objective`"):
            client.parse("The dog.", objektive="x")  # type: ignore[call-arg]
