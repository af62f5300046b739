"""The synchronous client, which `make format` writes from the asynchronous one."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


class Client:
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
        self._http = httpx.Client(**settings, transport=transport)

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
        return self._post("/v1/parse", body, ParseResponse)

    def predict(
        self, command: str, given: Given, *, model: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Answer a text, or a list of sentences, by a model of any kind: POST /v1/COMMAND."""
        body = messages.without_none({**messages.sentences_of(given), **options, "model": model})
        answer = self._send("POST", messages.kind_path(command), json=body)
        return messages.object_of(answer)

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
        body = messages.marginals_request(sentence, spans, threshold, raw, rescore, model)
        return self._post("/v1/marginals", body, MarginalsResponse)

    def tree_probability(
        self, trees: Sequence[str], *, rescore: bool = True, model: str | None = None
    ) -> TreesResponse:
        """Return log p(tree) and log p(tree | sentence) of bracketed trees."""
        body = messages.trees_request(trees, rescore, model)
        return self._post("/v1/tree-probability", body, TreesResponse)

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> SimilarityResponse:
        """Return how similar the two sentences of each pair are, and which of their words align."""
        body = messages.similarity_request(pairs)
        return self._post("/v1/similarity", body, SimilarityResponse)

    def dependencies(self, given: Given, *, model: str | None = None) -> DependenciesResponse:
        """Parse a text, or a list of sentences, into dependency trees."""
        body = messages.without_none({**messages.sentences_of(given), "model": model})
        return self._post("/v1/dependencies", body, DependenciesResponse)

    def tag(self, given: Given, *, model: str | None = None) -> TagResponse:
        """Tag the words of a text, or of a list of sentences."""
        body = messages.without_none({**messages.sentences_of(given), "model": model})
        return self._post("/v1/tag", body, TagResponse)

    def batch(
        self,
        sentences: Iterable[OneSentence],
        *,
        model: str | None = None,
        **options: Unpack[Asked],
    ) -> Iterator[BatchLine]:
        """Parse any number of sentences: yield one line for each, with a sentence or a problem."""
        parameters = messages.parse_options(options, model)
        for line in self._lines("/v1/batch", sentences, parameters, BatchLine):
            yield line

    def dependencies_batch(
        self, sentences: Iterable[OneSentence], *, model: str | None = None
    ) -> Iterator[DependencyBatchLine]:
        """Parse any number of sentences into dependency trees: yield one line for each."""
        path, parameters = "/v1/dependencies/batch", messages.without_none({"model": model})
        for line in self._lines(path, sentences, parameters, DependencyBatchLine):
            yield line

    def _lines(
        self,
        path: str,
        sentences: Iterable[OneSentence],
        parameters: Mapping[str, Any],
        kind: type[Line],
    ) -> Iterator[Line]:
        """Send sentences in batches to this path, and yield the answers to all of them."""
        done = 0
        for chunk in messages.batch_requests(sentences):
            body = messages.lines_of(chunk)
            answer = self._send("POST", path, content=body, params=parameters)
            for line in messages.batch_answers(answer, kind, len(chunk), done):
                yield line
            done += messages.BATCH

    def submit(
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
        answer = self._send("POST", "/v1/jobs", content=body, params=parameters, headers=headers)
        return answer_of(answer, JobAnswer)

    def job(self, id: str) -> JobAnswer:
        """Return how far a job is."""
        return answer_of(self._send("GET", messages.job_path(id)), JobAnswer)

    def job_answers(self, id: str, *, after: int = 0) -> Iterator[BatchLine]:
        """Yield the answers of a job that are there, behind those of the first `after` lines."""
        path, parameters = messages.job_path(id, "/answers"), {"after": after}
        try:
            with self._http.stream("GET", path, params=parameters) as answer:
                if not answer.is_success:
                    answer.read()
                    messages.checked(answer)
                lines = messages.Lines(answer)
                for piece in answer.iter_bytes():
                    for line in lines.read(piece):
                        yield line
        except httpx.TransportError as error:
            raise messages.lost(error, 1) from error

    def delete_job(self, id: str) -> None:
        """Stop a job if it is not done, and remove its answers."""
        messages.checked(self._send("DELETE", messages.job_path(id)))

    def models(self) -> Models:
        """List the models that are served."""
        return answer_of(self._send("GET", "/v1/models"), Models)

    def model(self, name: str) -> ModelDetails:
        """Return one model, with the facts of its training."""
        return answer_of(self._send("GET", messages.model_path(name)), ModelDetails)

    def _post(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        return answer_of(self._send("POST", path, json=body), kind)

    def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        attempt = 0
        while True:
            answer = None
            try:
                answer = self._http.request(method, path, **content)
            except httpx.TransportError as error:
                if messages.pause(attempt, None, self._retries) is None:
                    raise messages.lost(error, attempt + 1) from error
            pause = messages.pause(attempt, answer, self._retries)
            if pause is None and answer is not None:
                return answer
            time.sleep(pause or 0.0)
            attempt += 1
