"""The client for asyncio. The synchronous one is made from this file: `make format` writes it."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack
from uuid import uuid4

import httpx

from lpcfg.client import messages
from lpcfg.client.messages import Given, Line, OneSentence, T, answer_of
from lpcfg.kinds.constituency.options import Asked
from lpcfg.protocol.schemas import (
    BatchLine,
    DependenciesResponse,
    DependencyBatchLine,
    JobAnswer,
    MarginalsResponse,
    ModelDetails,
    Models,
    ParseResponse,
    SimilarityResponse,
    TagResponse,
    TreesResponse,
)


class AsyncClient:
    """A client of the service at an address, for asyncio.

    >>> async def ask():
    ...     async with lpcfg.AsyncClient("http://127.0.0.1:8000") as client:
    ...         return await client.parse("Cats sleep.", k=2)
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
        """Create a client.

        Args:
            base_url: the service's address
            api_key: sent with each request where the service asks for one
            timeout: seconds that one attempt may take
            retries: attempts that may follow the first one
            transport: passed to httpx
        """
        self._retries = retries
        settings = messages.settings(base_url, api_key, timeout)
        self._http = httpx.AsyncClient(**settings, transport=transport)

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
        self, given: Given, *, model: str | None = None, **options: Unpack[Asked]
    ) -> ParseResponse:
        """Parse a text, or a list of sentences.

        Args:
            given: text, or a list of sentences, each a string, a list of tokens, or a dict like
                one of `sentences` of /v1/parse
            model: NAME or NAME@VERSION of a model that is served; by default the first
            options: those of `lpcfg.ParseOptions`, such as `k`

        Raises:
            lpcfg.ServiceError: for a problem that the service answers, or no answer
        """
        body = {**messages.sentences_of(given), **messages.parse_options(options, model)}
        return await self._post("/v1/parse", body, ParseResponse)

    async def predict(
        self, command: str, given: Given, *, model: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Answer a text, or a list of sentences, by a model of any kind: POST /v1/COMMAND."""
        body = messages.without_none({**messages.sentences_of(given), **options, "model": model})
        answer = await self._send("POST", messages.kind_path(command), json=body)
        return messages.object_of(answer)

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
        body = messages.marginals_request(sentence, spans, threshold, raw, rescore, model)
        return await self._post("/v1/marginals", body, MarginalsResponse)

    async def tree_probability(
        self, trees: Sequence[str], *, rescore: bool = True, model: str | None = None
    ) -> TreesResponse:
        """Return log p(tree) and log p(tree | sentence) of bracketed trees."""
        body = messages.trees_request(trees, rescore, model)
        return await self._post("/v1/tree-probability", body, TreesResponse)

    async def similarity(self, pairs: Sequence[tuple[str, str]]) -> SimilarityResponse:
        """Return how similar the two sentences of each pair are, and which of their words align."""
        body = messages.similarity_request(pairs)
        return await self._post("/v1/similarity", body, SimilarityResponse)

    async def dependencies(self, given: Given, *, model: str | None = None) -> DependenciesResponse:
        """Parse a text, or a list of sentences, into dependency trees."""
        body = messages.without_none({**messages.sentences_of(given), "model": model})
        return await self._post("/v1/dependencies", body, DependenciesResponse)

    async def tag(self, given: Given, *, model: str | None = None) -> TagResponse:
        """Tag the words of a text, or of a list of sentences."""
        body = messages.without_none({**messages.sentences_of(given), "model": model})
        return await self._post("/v1/tag", body, TagResponse)

    async def batch(
        self,
        sentences: Iterable[OneSentence],
        *,
        model: str | None = None,
        **options: Unpack[Asked],
    ) -> AsyncIterator[BatchLine]:
        """Parse any number of sentences: yield one line for each, with a sentence or a problem."""
        parameters = messages.parse_options(options, model)
        async for line in self._lines("/v1/batch", sentences, parameters, BatchLine):
            yield line

    async def dependencies_batch(
        self, sentences: Iterable[OneSentence], *, model: str | None = None
    ) -> AsyncIterator[DependencyBatchLine]:
        """Parse any number of sentences into dependency trees: yield one line for each."""
        path, parameters = "/v1/dependencies/batch", messages.without_none({"model": model})
        async for line in self._lines(path, sentences, parameters, DependencyBatchLine):
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
        for chunk in messages.batch_requests(sentences):
            body = messages.lines_of(chunk)
            answer = await self._send("POST", path, content=body, params=parameters)
            for line in messages.batch_answers(answer, kind, len(chunk), done):
                yield line
            done += messages.BATCH

    async def submit(
        self,
        sentences: Iterable[OneSentence],
        *,
        model: str | None = None,
        **options: Unpack[Asked],
    ) -> JobAnswer:
        """Leave sentences to be parsed as a job, which the service keeps on its disk."""
        parameters = messages.parse_options(options, model)
        headers = {"Idempotency-Key": uuid4().hex}  # so that a second attempt is the same job
        body = messages.lines_of([messages.sentence_of(one) for one in sentences])
        answer = await self._send(
            "POST", "/v1/jobs", content=body, params=parameters, headers=headers
        )
        return answer_of(answer, JobAnswer)

    async def job(self, id: str) -> JobAnswer:
        """Return how far a job is."""
        return answer_of(await self._send("GET", messages.job_path(id)), JobAnswer)

    async def job_answers(self, id: str, *, after: int = 0) -> AsyncIterator[BatchLine]:
        """Yield the answers of a job that are there, behind those of the first `after` lines."""
        path, parameters = messages.job_path(id, "/answers"), {"after": after}
        try:
            async with self._http.stream("GET", path, params=parameters) as answer:
                if not answer.is_success:
                    await answer.aread()
                    messages.checked(answer)
                lines = messages.Lines(answer)
                async for piece in answer.aiter_bytes():
                    for line in lines.read(piece):
                        yield line
        except httpx.TransportError as error:
            raise messages.lost(error, 1) from error

    async def delete_job(self, id: str) -> None:
        """Stop a job if it is not done, and remove its answers."""
        messages.checked(await self._send("DELETE", messages.job_path(id)))

    async def models(self) -> Models:
        """List the models that are served."""
        return answer_of(await self._send("GET", "/v1/models"), Models)

    async def model(self, name: str) -> ModelDetails:
        """Return one model, with the facts of its training."""
        return answer_of(await self._send("GET", messages.model_path(name)), ModelDetails)

    async def _post(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        return answer_of(await self._send("POST", path, json=body), kind)

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        attempt = 0
        while True:
            answer = None
            try:
                answer = await self._http.request(method, path, **content)
            except httpx.TransportError as error:
                if messages.pause(attempt, None, self._retries) is None:
                    raise messages.lost(error, attempt + 1) from error
            pause = messages.pause(attempt, answer, self._retries)
            if pause is None and answer is not None:
                return answer
            await asyncio.sleep(pause or 0.0)
            attempt += 1
