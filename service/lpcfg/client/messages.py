"""Requests and answers of the clients: how they are written, read, and tried again.

Every request may safely be sent twice. After a lost connection, 429, 502, 503 or 504 a client
tries again: after the time that the service asks for, or else after a time that doubles, and a
little later at random, so that many clients do not come back together. Other problems are raised as
ServiceError.
"""

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, RootModel, ValidationError

from lpcfg.base.errors import InputError, LpcfgError
from lpcfg.kinds.constituency.options import Asked, ParseOptions
from lpcfg.protocol.schemas import BatchLine, DependencyBatchLine, Problem, TokensInput

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
BATCH = 64
"""Lines of one batch request.

httpx sends a whole body before it reads, so the answers must meanwhile fit into the buffers in
between: 64 answers are some hundred kilobytes.
"""


class ServiceError(LpcfgError):
    """Raised when the service answers with a problem, or does not answer."""

    def __init__(self, message: str, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem


def pause(attempt: int, answer: httpx.Response | None, retries: int) -> float | None:
    """Return the seconds to wait before the next attempt, or None to stop trying.

    Args:
        attempt: attempts before this one
        answer: the answer to this one; None where the connection was lost
        retries: attempts that may follow the first one
    """
    if attempt >= retries or (answer is not None and answer.status_code not in _RETRIED):
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


def settings(base_url: str, api_key: str | None, timeout: float) -> dict[str, Any]:
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    return {"base_url": base_url, "headers": headers, "timeout": timeout}


def checked(answer: httpx.Response) -> bytes:
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


def answer_of(answer: httpx.Response, kind: type[T]) -> T:
    return _read(answer, checked(answer), kind)


def object_of(answer: httpx.Response) -> dict[str, Any]:
    """Read an answer of no named type."""
    return _read(answer, checked(answer), RootModel[dict[str, Any]]).root


def kind_path(command: str) -> str:
    return f"/v1/{quote(command, safe='')}"


def model_path(name: str) -> str:
    return f"/v1/models/{quote(name, safe='')}"


def job_path(id: str, rest: str = "") -> str:
    return f"/v1/jobs/{quote(id, safe='')}{rest}"


class Lines:
    """Cuts the pieces of an answer into lines."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self._rest = b""

    def read(self, piece: bytes) -> Iterator[BatchLine]:
        """Read the lines that end in this piece."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return (_read(self._answer, line, BatchLine) for line in lines)


def lost(error: httpx.TransportError, attempts: int) -> ServiceError:
    return ServiceError(
        f"expected an answer, got {type(error).__name__} in {attempts} attempts: check that the "
        "service runs at this address"
    )


def sentence_of(one: OneSentence) -> Any:
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


def sentences_of(given: Given) -> dict[str, Any]:
    """Put text, or a list of sentences, into the form that requests have."""
    if isinstance(given, str):
        return {"text": given}
    if isinstance(given, list | tuple):
        return {"sentences": [sentence_of(one) for one in given]}
    raise InputError(
        f"expected text as a string, or a list of sentences, got {type(given).__name__}: give one "
        "of these"
    )


def without_none(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if one is not None}


def parse_options(given: Asked, model: str | None) -> dict[str, Any]:
    """Put the options that were given, and the model, into the form that requests have."""
    ParseOptions.of(given)
    return without_none({**given, "model": model})


def trees_request(trees: Sequence[str], rescore: bool, model: str | None) -> dict[str, Any]:
    return without_none({"trees": list(trees), "rescore": _unless(rescore), "model": model})


def marginals_request(
    sentence: OneSentence,
    spans: Sequence[tuple[int, int]] | None,
    threshold: float,
    raw: bool,
    rescore: bool,
    model: str | None,
) -> dict[str, Any]:
    asked = None if spans is None else [{"start": start, "end": end} for start, end in spans]
    request = {"sentences": [sentence_of(sentence)], "spans": asked, "threshold": threshold}
    return without_none({**request, "raw": raw, "rescore": _unless(rescore), "model": model})


def _unless(default: bool) -> bool | None:
    """Leave an option that is true by default out of a request that does not need it."""
    return None if default else False


def similarity_request(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"pairs": [{"first": first, "second": second} for first, second in pairs]}


def batch_requests(sentences: Iterable[OneSentence]) -> Iterator[list[Any]]:
    remaining = iter(sentences)
    while chunk := [sentence_of(one) for one in islice(remaining, BATCH)]:
        yield chunk


def lines_of(chunk: Sequence[Any]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in chunk).encode()


def batch_answers(
    answer: httpx.Response, kind: type[Line], asked: int, before: int
) -> Iterator[Line]:
    """Yield the answers to so many lines. Raise if there are not as many, after those there are."""
    lines = checked(answer).splitlines()
    for line in lines:
        one = _read(answer, line, kind)
        yield one.model_copy(update={"line": before + one.line})
    if len(lines) != asked:
        raise ServiceError(
            f"expected answers to {asked} lines from line {before + 1} on, got {len(lines)}: the "
            "service ended the batch, send the rest again"
        )
