"""Clients of the service, synchronous and asynchronous, with retries and typed answers.

    with Client("http://127.0.0.1:8000") as client:
        answer = client.parse("The cat sat on the mat.")
        print(answer.sentences[0].parses[0].tree)

Every request may safely be sent twice. After a lost connection, 429, 502, 503 or 504 the client
tries again: after the time that the service asks for, or else after a time that doubles, and a
little later at random, so that many clients do not come back together. Other problems are raised as
ServiceError.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx
from pydantic import BaseModel, ValidationError

from lpcfg.base.errors import InputError, LpcfgError
from lpcfg.protocol.schemas import (
    BatchLine,
    DependenciesResponse,
    DependencyBatchLine,
    JobAnswer,
    MarginalsResponse,
    ModelDetails,
    Models,
    ParseResponse,
    Problem,
    SimilarityResponse,
    TagResponse,
    TokensInput,
    TreesResponse,
)

OneSentence = str | Sequence[str] | Mapping[str, Any] | TokensInput
"""A sentence as text, as tokens, or as a dict like one of `sentences` of /v1/parse."""
Given = str | Sequence[OneSentence]
T = TypeVar("T", bound=BaseModel)
Line = TypeVar("Line", BatchLine, DependencyBatchLine)

_QUOTA = 429
_RETRIED = frozenset({_QUOTA, 502, 503, 504})
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
_SPREAD = 0.25  # of a pause is added to it at random
_BATCH = 64
"""Lines of one batch request.

httpx sends a whole body before it reads, so the answers must meanwhile fit into the buffers in
between: 64 answers are some hundred kilobytes.
"""


class ServiceError(LpcfgError):
    """Raised when the service answers with a problem, or does not answer."""

    def __init__(self, message: str, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem


class _Client:
    """The part that both clients share: building requests, reading answers, deciding on retries."""

    def __init__(self, retries: int) -> None:
        self._retries = retries

    def _pause(self, attempt: int, answer: httpx.Response | None) -> float | None:
        """Return the seconds to wait before the next attempt, or None to stop trying."""
        if attempt >= self._retries or (answer is not None and answer.status_code not in _RETRIED):
            return None
        asked = None if answer is None else _asked(answer.headers.get("retry-after", ""))
        if asked is None:
            asked = _FIRST_PAUSE * 2.0**attempt
        elif answer is not None and answer.status_code == _QUOTA and asked > _LONGEST_PAUSE:
            return None  # a quota is not there any sooner than the service says
        return min(asked, _LONGEST_PAUSE) * random.uniform(1.0, 1.0 + _SPREAD)


def _asked(header: str) -> float | None:
    """Return the seconds of a Retry-After, which may be a date, or None if it says nothing."""
    if header.isdecimal():
        return float(header)
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)


def _options(base_url: str, api_key: str | None, timeout: float) -> dict[str, Any]:
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    return {"base_url": base_url, "headers": headers, "timeout": timeout}


def _checked(answer: httpx.Response) -> bytes:
    if answer.is_success:
        return answer.content
    kind = answer.headers.get("content-type", "")
    if not kind.startswith("application/problem+json"):
        raise ServiceError(
            f"expected an answer of the service at {answer.url}, got {answer.status_code} "
            f"{kind or 'without a type'}: check the address"
        )
    problem = _read(answer, answer.content, Problem)
    at = f" (at {problem.at})" if problem.at else ""
    raise ServiceError(f"{problem.title}: {problem.detail}{at}", problem)


def _read(answer: httpx.Response, content: bytes, kind: type[T]) -> T:
    """Read an answer, or a line of one."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        got = answer.headers.get("content-type", "no content-type")
        raise ServiceError(
            f"expected {kind.__name__} of the service at {answer.url}, got {answer.status_code} "
            f"{got} with something else: check the address and the versions"
        ) from error


def _answer(answer: httpx.Response, kind: type[T]) -> T:
    return _read(answer, _checked(answer), kind)


def _model_path(name: str) -> str:
    return f"/v1/models/{quote(name, safe='')}"


def _job_path(id: str, rest: str = "") -> str:
    return f"/v1/jobs/{quote(id, safe='')}{rest}"


class _Lines:
    """Cuts the pieces of an answer into lines."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self._rest = b""

    def read(self, piece: bytes) -> Iterator[BatchLine]:
        """Read the lines that end in this piece."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return (_read(self._answer, line, BatchLine) for line in lines)


def _lost(error: httpx.TransportError, attempts: int) -> ServiceError:
    return ServiceError(
        f"expected an answer, got {type(error).__name__} in {attempts} attempts: check that the "
        "service runs at this address"
    )


def _sentence(one: OneSentence) -> Any:
    """Put a sentence into the form that requests have."""
    if isinstance(one, str):
        return one
    if isinstance(one, TokensInput):
        return one.model_dump(exclude_defaults=True)
    if isinstance(one, Mapping):
        return dict(one)
    if isinstance(one, list | tuple):
        return {"tokens": list(one)}
    raise InputError(
        "expected a sentence as a string, a list of tokens, or a dict like "
        f'{{"tokens": ["Cats", "sleep"]}}, got {type(one).__name__}: give one of these'
    )


def _sentences(given: Given) -> dict[str, Any]:
    """Put text, or a list of sentences, into the form that requests have."""
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, list | tuple):
        return {"sentences": [_sentence(one) for one in given]}
    raise InputError(
        f"expected text as a string, or a list of sentences, got {type(given).__name__}: give one "
        "of these"
    )


def _without_none(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if one is not None}


def _parse_request(
    given: Given, k: int, objective: str | None, rescore: bool, model: str | None
) -> dict[str, Any]:
    return {**_sentences(given), **_parse_options(k, objective, rescore, model)}


def _parse_options(
    k: int, objective: str | None, rescore: bool, model: str | None
) -> dict[str, Any]:
    options = {"k": k, "objective": objective, "rescore": _unless_default(rescore), "model": model}
    return _without_none(options)


def _unless_default(rescore: bool) -> bool | None:
    """Leave `rescore` out of a request that does not need it."""
    return None if rescore else False


def _trees_request(trees: Sequence[str], rescore: bool, model: str | None) -> dict[str, Any]:
    rescored = _unless_default(rescore)
    return _without_none({"trees": list(trees), "rescore": rescored, "model": model})


def _marginals_request(
    sentence: OneSentence,
    spans: Sequence[tuple[int, int]] | None,
    threshold: float,
    raw: bool,
    rescore: bool,
    model: str | None,
) -> dict[str, Any]:
    asked = None if spans is None else [{"start": start, "end": end} for start, end in spans]
    request = {"sentences": [_sentence(sentence)], "spans": asked, "threshold": threshold}
    options = {"raw": raw, "rescore": _unless_default(rescore), "model": model}
    return _without_none({**request, **options})


def _similarity_request(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"pairs": [{"first": first, "second": second} for first, second in pairs]}


def _batch_requests(sentences: Iterable[OneSentence]) -> Iterator[list[Any]]:
    remaining = iter(sentences)
    while chunk := [_sentence(one) for one in islice(remaining, _BATCH)]:
        yield chunk


def _lines_of(chunk: Sequence[Any]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in chunk).encode()


def _batch_answers(
    answer: httpx.Response, kind: type[Line], asked: int, before: int
) -> Iterator[Line]:
    """Yield the answers to so many lines. Raise if there are not as many, after those there are."""
    lines = _checked(answer).splitlines()
    for line in lines:
        one = _read(answer, line, kind)
        yield one.model_copy(update={"line": before + one.line})
    if len(lines) != asked:
        raise ServiceError(
            f"expected answers to {asked} lines from line {before + 1} on, got {len(lines)}: the "
            "service ended the batch, send the rest again"
        )


class Client(_Client):
    """A client of the service at an address.

    >>> with lpcfg.Client("http://127.0.0.1:8000") as client:
    ...     answer = client.parse("The cat sat on the mat.")
    ...     tokens = client.parse([["Cats", "sleep", "."]], k=2)
    ...     tagged = client.parse([{"tokens": ["Cats", "sleep"], "tags": ["NNS", None]}])
    >>> answer.sentences[0].parses[0].tree
    '(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .))'
    >>> len(tokens.sentences[0].parses), tagged.sentences[0].tokens[0].tag
    (2, 'NNS')
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Create a client. `timeout` is in seconds; `retries` come after the first attempt.

        `transport` is passed to httpx.
        """
        super().__init__(retries)
        self._http = httpx.Client(**_options(base_url, api_key, timeout), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def parse(
        self,
        given: Given,
        *,
        k: int = 1,
        objective: str | None = None,
        rescore: bool = True,
        model: str | None = None,
    ) -> ParseResponse:
        """Parse a text, or a list of sentences: the `k` best trees of each.

        A sentence is a string, a list of tokens, or a dict like one of `sentences` of /v1/parse.
        """
        body = _parse_request(given, k, objective, rescore, model)
        return self._post("/v1/parse", body, ParseResponse)

    def marginals(
        self,
        sentence: OneSentence,
        *,
        spans: Sequence[tuple[int, int]] | None = None,
        threshold: float = 0.01,
        raw: bool = False,
        rescore: bool = True,
        model: str | None = None,
    ) -> MarginalsResponse:
        """Return the probability of every labelled span of one sentence, or of the given spans."""
        body = _marginals_request(sentence, spans, threshold, raw, rescore, model)
        return self._post("/v1/marginals", body, MarginalsResponse)

    def tree_probability(
        self, trees: Sequence[str], *, rescore: bool = True, model: str | None = None
    ) -> TreesResponse:
        """Return log p(tree) and log p(tree | sentence) of bracketed trees."""
        body = _trees_request(trees, rescore, model)
        return self._post("/v1/tree-probability", body, TreesResponse)

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> SimilarityResponse:
        """Return how similar the two sentences of each pair are, and which of their words align."""
        return self._post("/v1/similarity", _similarity_request(pairs), SimilarityResponse)

    def dependencies(
        self,
        given: Given,
        *,
        model: str | None = None,
    ) -> DependenciesResponse:
        """Parse a text, or a list of sentences, into dependency trees."""
        body = _without_none({**_sentences(given), "model": model})
        return self._post("/v1/dependencies", body, DependenciesResponse)

    def tag(
        self,
        given: Given,
        *,
        model: str | None = None,
    ) -> TagResponse:
        """Tag the words of a text, or of a list of sentences."""
        body = _without_none({**_sentences(given), "model": model})
        return self._post("/v1/tag", body, TagResponse)

    def batch(
        self,
        sentences: Iterable[OneSentence],
        *,
        k: int = 1,
        objective: str | None = None,
        rescore: bool = True,
        model: str | None = None,
    ) -> Iterator[BatchLine]:
        """Parse any number of sentences: yield one line for each, with a sentence or a problem."""
        parameters = _parse_options(k, objective, rescore, model)
        yield from self._lines("/v1/batch", sentences, parameters, BatchLine)

    def dependencies_batch(
        self, sentences: Iterable[OneSentence], *, model: str | None = None
    ) -> Iterator[DependencyBatchLine]:
        """Parse any number of sentences into dependency trees: yield one line for each."""
        parameters = _without_none({"model": model})
        yield from self._lines("/v1/dependencies/batch", sentences, parameters, DependencyBatchLine)

    def _lines(
        self,
        path: str,
        sentences: Iterable[OneSentence],
        parameters: Mapping[str, Any],
        kind: type[Line],
    ) -> Iterator[Line]:
        """Send sentences in batches to this path, and yield the answers to all of them."""
        done = 0
        for chunk in _batch_requests(sentences):
            body = _lines_of(chunk)
            answer = self._send("POST", path, content=body, params=parameters)
            yield from _batch_answers(answer, kind, len(chunk), done)
            done += _BATCH

    def submit(
        self,
        sentences: Iterable[OneSentence],
        *,
        k: int = 1,
        objective: str | None = None,
        rescore: bool = True,
        model: str | None = None,
    ) -> JobAnswer:
        """Leave sentences to be parsed as a job, which the service keeps on its disk."""
        parameters = _parse_options(k, objective, rescore, model)
        headers = {"Idempotency-Key": uuid4().hex}  # so that a second attempt is the same job
        body = _lines_of([_sentence(one) for one in sentences])
        answer = self._send("POST", "/v1/jobs", content=body, params=parameters, headers=headers)
        return _answer(answer, JobAnswer)

    def job(self, id: str) -> JobAnswer:
        """Return how far a job is."""
        return _answer(self._send("GET", _job_path(id)), JobAnswer)

    def job_answers(self, id: str, *, after: int = 0) -> Iterator[BatchLine]:
        """Yield the answers of a job that are there, behind those of the first `after` lines."""
        path, parameters = _job_path(id, "/answers"), {"after": after}
        try:
            with self._http.stream("GET", path, params=parameters) as answer:
                if not answer.is_success:
                    answer.read()
                    _checked(answer)
                lines = _Lines(answer)
                for piece in answer.iter_bytes():
                    yield from lines.read(piece)
        except httpx.TransportError as error:
            raise _lost(error, 1) from error

    def delete_job(self, id: str) -> None:
        """Stop a job if it is not done, and remove its answers."""
        _checked(self._send("DELETE", _job_path(id)))

    def models(self) -> Models:
        """List the models that are served."""
        return _answer(self._send("GET", "/v1/models"), Models)

    def model(self, name: str) -> ModelDetails:
        """Return one model, with the facts of its training."""
        return _answer(self._send("GET", _model_path(name)), ModelDetails)

    def _post(self, path: str, body: Mapping[str, Any], answer: type[T]) -> T:
        return _answer(self._send("POST", path, json=body), answer)

    def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        attempt = 0
        while True:
            answer = None
            try:
                answer = self._http.request(method, path, **content)
            except httpx.TransportError as error:
                if self._pause(attempt, None) is None:
                    raise _lost(error, attempt + 1) from error
            pause = self._pause(attempt, answer)
            if pause is None and answer is not None:
                return answer
            time.sleep(pause or 0.0)
            attempt += 1


class AsyncClient(_Client):
    """A client of the service at an address, for asyncio.

    >>> async def ask():
    ...     async with lpcfg.AsyncClient("http://127.0.0.1:8000") as client:
    ...         return await client.parse("Cats sleep.")
    >>> import asyncio
    >>> asyncio.run(ask()).sentences[0].parses[0].tree
    '(S (NP (NNS Cats)) (VP (VBP sleep)) (. .))'
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client. `timeout` is in seconds; `retries` come after the first attempt.

        `transport` is passed to httpx.
        """
        super().__init__(retries)
        self._http = httpx.AsyncClient(**_options(base_url, api_key, timeout), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def parse(
        self,
        given: Given,
        *,
        k: int = 1,
        objective: str | None = None,
        rescore: bool = True,
        model: str | None = None,
    ) -> ParseResponse:
        """Parse a text, or a list of sentences: the `k` best trees of each.

        A sentence is a string, a list of tokens, or a dict like one of `sentences` of /v1/parse.
        """
        body = _parse_request(given, k, objective, rescore, model)
        return await self._post("/v1/parse", body, ParseResponse)

    async def marginals(
        self,
        sentence: OneSentence,
        *,
        spans: Sequence[tuple[int, int]] | None = None,
        threshold: float = 0.01,
        raw: bool = False,
        rescore: bool = True,
        model: str | None = None,
    ) -> MarginalsResponse:
        """Return the probability of every labelled span of one sentence, or of the given spans."""
        body = _marginals_request(sentence, spans, threshold, raw, rescore, model)
        return await self._post("/v1/marginals", body, MarginalsResponse)

    async def tree_probability(
        self, trees: Sequence[str], *, rescore: bool = True, model: str | None = None
    ) -> TreesResponse:
        """Return log p(tree) and log p(tree | sentence) of bracketed trees."""
        body = _trees_request(trees, rescore, model)
        return await self._post("/v1/tree-probability", body, TreesResponse)

    async def similarity(self, pairs: Sequence[tuple[str, str]]) -> SimilarityResponse:
        """Return how similar the two sentences of each pair are, and which of their words align."""
        return await self._post("/v1/similarity", _similarity_request(pairs), SimilarityResponse)

    async def dependencies(
        self,
        given: Given,
        *,
        model: str | None = None,
    ) -> DependenciesResponse:
        """Parse a text, or a list of sentences, into dependency trees."""
        body = _without_none({**_sentences(given), "model": model})
        return await self._post("/v1/dependencies", body, DependenciesResponse)

    async def tag(
        self,
        given: Given,
        *,
        model: str | None = None,
    ) -> TagResponse:
        """Tag the words of a text, or of a list of sentences."""
        body = _without_none({**_sentences(given), "model": model})
        return await self._post("/v1/tag", body, TagResponse)

    async def batch(
        self,
        sentences: Iterable[OneSentence],
        *,
        k: int = 1,
        objective: str | None = None,
        rescore: bool = True,
        model: str | None = None,
    ) -> AsyncIterator[BatchLine]:
        """Parse any number of sentences: yield one line for each, with a sentence or a problem."""
        parameters = _parse_options(k, objective, rescore, model)
        lines = self._lines("/v1/batch", sentences, parameters, BatchLine)
        async for line in lines:
            yield line

    async def dependencies_batch(
        self, sentences: Iterable[OneSentence], *, model: str | None = None
    ) -> AsyncIterator[DependencyBatchLine]:
        """Parse any number of sentences into dependency trees: yield one line for each."""
        parameters = _without_none({"model": model})
        lines = self._lines("/v1/dependencies/batch", sentences, parameters, DependencyBatchLine)
        async for line in lines:
            yield line

    async def _lines(
        self,
        path: str,
        sentences: Iterable[OneSentence],
        parameters: Mapping[str, Any],
        kind: type[Line],
    ) -> AsyncIterator[Line]:
        """Send sentences in batches to this path, and yield the answers to all of them."""
        done = 0
        for chunk in _batch_requests(sentences):
            body = _lines_of(chunk)
            answer = await self._send("POST", path, content=body, params=parameters)
            for line in _batch_answers(answer, kind, len(chunk), done):
                yield line
            done += _BATCH

    async def submit(
        self,
        sentences: Iterable[OneSentence],
        *,
        k: int = 1,
        objective: str | None = None,
        rescore: bool = True,
        model: str | None = None,
    ) -> JobAnswer:
        """Leave sentences to be parsed as a job, which the service keeps on its disk."""
        parameters = _parse_options(k, objective, rescore, model)
        headers = {"Idempotency-Key": uuid4().hex}  # so that a second attempt is the same job
        body = _lines_of([_sentence(one) for one in sentences])
        answer = await self._send(
            "POST", "/v1/jobs", content=body, params=parameters, headers=headers
        )
        return _answer(answer, JobAnswer)

    async def job(self, id: str) -> JobAnswer:
        """Return how far a job is."""
        return _answer(await self._send("GET", _job_path(id)), JobAnswer)

    async def job_answers(self, id: str, *, after: int = 0) -> AsyncIterator[BatchLine]:
        """Yield the answers of a job that are there, behind those of the first `after` lines."""
        path, parameters = _job_path(id, "/answers"), {"after": after}
        try:
            async with self._http.stream("GET", path, params=parameters) as answer:
                if not answer.is_success:
                    await answer.aread()
                    _checked(answer)
                lines = _Lines(answer)
                async for piece in answer.aiter_bytes():
                    for line in lines.read(piece):
                        yield line
        except httpx.TransportError as error:
            raise _lost(error, 1) from error

    async def delete_job(self, id: str) -> None:
        """Stop a job if it is not done, and remove its answers."""
        _checked(await self._send("DELETE", _job_path(id)))

    async def models(self) -> Models:
        """List the models that are served."""
        return _answer(await self._send("GET", "/v1/models"), Models)

    async def model(self, name: str) -> ModelDetails:
        """Return one model, with the facts of its training."""
        return _answer(await self._send("GET", _model_path(name)), ModelDetails)

    async def _post(self, path: str, body: Mapping[str, Any], answer: type[T]) -> T:
        return _answer(await self._send("POST", path, json=body), answer)

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        attempt = 0
        while True:
            answer = None
            try:
                answer = await self._http.request(method, path, **content)
            except httpx.TransportError as error:
                if self._pause(attempt, None) is None:
                    raise _lost(error, attempt + 1) from error
            pause = self._pause(attempt, answer)
            if pause is None and answer is not None:
                return answer
            await asyncio.sleep(pause or 0.0)
            attempt += 1
