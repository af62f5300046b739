"""Errors as RFC 9457 problems: one table, one shape.

a kind (KINDS)  ←  Refused, raised in this package, names its kind
                ←  lpcfg.base.errors, which know nothing of HTTP, by their class
                ←  FastAPI's validation errors and Starlette's 404 and 405
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lpcfg.base.errors import (
    DeadlineError,
    InputError,
    LimitError,
    LpcfgError,
    Stopped,
    StoreError,
    TreebankError,
)
from lpcfg.protocol.schemas import ALTERNATIVES, MOST_FAULTS, WRONG, Fault, Problem, counted
from lpcfg.serve.http.encoder import Encoded, encoded

MEDIA_TYPE = "application/problem+json"
_SHOWN = 60  # a message repeats at most this many characters of an input
_FAULT = "expected an answer, got a fault of the service: report it with the request's id"


@dataclass(frozen=True)
class Kind:
    """A kind of problem, as /docs describes it to people who follow a problem's `type`."""

    status: int
    title: str
    meaning: str


KINDS = {
    "content": Kind(422, "The content of the request is not valid", "`at` says where to look"),
    "tree": Kind(422, "These brackets are not a tree", "see `line` and `column`"),
    "limit": Kind(422, "A limit of this service is exceeded", "see `limit` and `value`"),
    "body-limit": Kind(413, "The body is too large", "send less at once, or use /v1/batch"),
    "media-type": Kind(415, "The body is not JSON", "say content-type: application/json"),
    "not-found": Kind(404, "Nothing found at this path", "/docs lists the paths"),
    "method": Kind(405, "This method is not allowed here", "the header Allow lists those that are"),
    "key": Kind(401, "A key is needed", "send Authorization: Bearer KEY"),
    "quota": Kind(429, "The quota of this key is used up", "try again after Retry-After seconds"),
    "overload": Kind(503, "The service is busy", "try again after Retry-After seconds"),
    "starting": Kind(503, "The service is starting", "try again after Retry-After seconds"),
    "ending": Kind(503, "The service is ending", "send it again: another process may answer"),
    "deadline": Kind(504, "The time for one request is over", "send less at once"),
    "closed": Kind(499, "The client closed the connection", "seen in logs and metrics only"),
    "model": Kind(409, "The new version cannot be used", "the old one keeps answering"),
    "job": Kind(500, "The job was set aside", "`line` is the first without an answer"),
    "fault": Kind(500, "The service has a fault", "report it with the request's id"),
    "slow": Kind(408, "The request came too slowly", "send it faster"),
    "head-limit": Kind(431, "The head of the request is too large", "send shorter headers"),
    "http": Kind(400, "The service cannot read this request", "see `detail`"),
}


class Refused(LpcfgError):
    """A request that this service refuses, with the reason."""

    def __init__(
        self, kind: str, detail: str, *, at: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.at = at
        self.retry_after = retry_after


class InvalidError(LpcfgError):
    """A body with faults that are described already."""

    def __init__(self, told: Problem) -> None:
        super().__init__(told.detail)
        self.problem = told


class BodyLimitError(LimitError):
    """A body beyond the limit."""


def problem(kind: str, detail: str, **members: Any) -> Problem:
    """Create a problem of this kind."""
    known = KINDS[kind]
    return Problem(
        type=f"/docs#problem-{kind}",
        title=known.title,
        status=known.status,
        detail=detail,
        **members,
    )


def problem_of(error: LpcfgError, under: str = "") -> Problem:
    """Turn an error into a problem. `under` is prepended to the error's pointer."""
    match error:
        case InvalidError():
            return error.problem
        case Refused():
            return problem(error.kind, str(error), at=error.at)
        case LimitError():
            return problem(
                "body-limit" if isinstance(error, BodyLimitError) else "limit",
                str(error),
                at=under + error.pointer,
                limit=error.limit,
                value=error.value,
            )
        case InputError():
            return problem("content", str(error), at=under + error.pointer)
        case TreebankError():
            return problem("tree", error.problem, at=under, line=error.line, column=error.column)
        case DeadlineError():
            return problem("deadline", str(error))
        case Stopped():
            return problem("closed", str(error))
        case StoreError():
            return problem("model", str(error))
        case _:
            return problem("fault", _FAULT)


def json_of(value: Problem) -> Encoded:
    """Encode the problem, without the members that do not apply."""
    return encoded(value.model_dump(exclude_none=True))


def response(value: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Create the response for a problem."""
    return Response(json_of(value), value.status, headers, media_type=MEDIA_TYPE)


def documented(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Describe, for OpenAPI, the problems that an endpoint may answer with."""
    found: dict[int | str, dict[str, Any]] = {}
    for kind in (*kinds, "fault"):
        known = KINDS[kind]
        told = found.setdefault(known.status, {"model": Problem, "description": known.title})
        if known.title not in told["description"]:
            told["description"] += f"; {known.title[0].lower()}{known.title[1:]}"
    return {status: {**told, "content": {MEDIA_TYPE: {}}} for status, told in found.items()}


def headers_of(error: LpcfgError) -> dict[str, str]:
    """Return the headers that tell a client what to do about an error."""
    headers = {}
    if isinstance(error, Refused):
        if error.retry_after is not None:
            headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
        if error.kind == "key":
            headers["WWW-Authenticate"] = "Bearer"
    return headers


# Handlers -----------------------------------------------------------------------------------------


def install(app: FastAPI) -> None:
    """Make this application answer every failure with a problem."""
    app.add_exception_handler(LpcfgError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_fault)


def answer(request: Request, error: LpcfgError | RequestValidationError) -> Response:
    """Answer an error as the application does, for what does not go through it."""
    handle = _on_error if isinstance(error, LpcfgError) else _on_validation
    return handle(request, error)


def _on_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, LpcfgError):
        raise error
    return response(_for(request, problem_of(error)), headers_of(error))


def _for(request: Request, told: Problem) -> Problem:
    """Add the member that clients of the Open Inference Protocol look for, at its paths."""
    if not request.url.path.startswith("/v2/models"):
        return told
    return told.model_copy(update={"error": told.detail})


def _on_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            got = _shown(request.url.path)
            told = problem("not-found", f"expected a path that /docs lists, got {got}: correct it")
        case 405:
            allowed = headers["Allow"] = headers["Allow"].replace("GET", "GET, HEAD")
            got = f"{request.method} {request.url.path}"
            told = problem("method", f"expected {allowed}, got {_cut(got)}: see /docs")
        case status:
            detail = f"expected a request as /docs describes, got one with `{error.detail}`"
            told = problem("http", f"{detail}: correct it").model_copy(update={"status": status})
    return response(_for(request, told), headers)


def _on_fault(_: Request, __: Exception) -> Response:
    return response(problem("fault", _FAULT))


def _on_validation(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return response(problem_of_validation(error.errors()))


def problem_of_validation(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Turn pydantic's errors into one problem: the first one as its detail, and a list of all."""
    faults = [Fault(detail=_detail(one), at=_pointer(one["loc"])) for one in errors[:MOST_FAULTS]]
    several = faults if len(faults) > 1 else None
    return problem("content", faults[0].detail, at=faults[0].at, errors=several)


_WORDING = {
    "missing": ("a member `{name}`", "add it"),
    "extra_forbidden": ("no member `{name}`", "remove it, or correct its spelling"),
    "string_type": ("a string", "send one, in quotes"),
    "string_too_short": ("at least one character", "fill it in, or leave the member out"),
    "string_pattern_mismatch": (
        "a word with no white space but single blanks inside",
        "send each word by itself, or the sentence as a string",
    ),
    "int_type": ("a whole number", "send digits alone"),
    "int_parsing": ("a whole number", "send digits alone"),
    "int_parsing_size": ("a whole number", "send a smaller one"),
    "float_type": ("a number", "send one, without quotes"),
    "finite_number": ("a finite number", "send a smaller one"),
    "bool_type": ("true or false", "send one of them, without quotes"),
    "list_type": ("a list", "put it into [ and ]"),
    "too_long": ("at most {max_length}", "send fewer"),
    "greater_than_equal": ("at least {ge:g}", "raise it"),
    "less_than_equal": ("at most {le:g}", "lower it"),
    "literal_error": ("{expected}", "use one of them"),
    WRONG: ("{expected}", "{cure}"),
}
"""The expectation and the cure, for each kind of error that pydantic finds."""
_OTHERWISE = ("what /docs says of it", "correct it")
_GOT = {"missing": "none", "extra_forbidden": "one"}


def _detail(error: Mapping[str, Any]) -> str:
    kind, context = error["type"], {"name": error["loc"][-1], **error.get("ctx", {})}
    expected, cure = (text.format(**context) for text in _WORDING.get(kind, _OTHERWISE))
    got = context.get("got") or _GOT.get(kind) or _shown(error["input"])
    return f"expected {expected}, got {got}: {cure}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {counted(len(value), 'member')}"
    if isinstance(value, list):
        return f"a list with {counted(len(value), 'member')}"
    return _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _pointer(location: Sequence[str | int]) -> str:
    """Write the place in the request as a JSON pointer."""
    if location and location[0] in ("query", "path", "header"):
        return "#" + "/".join(map(str, location))
    at = ""
    for step in location[1:]:
        if step not in ALTERNATIVES:
            at += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return at
