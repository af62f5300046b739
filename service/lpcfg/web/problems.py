"""Errors as RFC 9457 problems: one table, one shape.

a kind (KINDS)  ←  Refused, raised in this package, names its kind
                ←  lpcfg.errors, which know no HTTP, by their class
                ←  FastAPI's validation errors and Starlette's 404 and 405
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lpcfg.errors import (
    DeadlineError,
    InputError,
    LimitError,
    LpcfgError,
    Stopped,
    StoreError,
    TreebankError,
)
from lpcfg.web.schemas import ALTERNATIVES, Fault, Problem

MEDIA_TYPE = "application/problem+json"
_MOST_FAULTS = 16
_SHOWN = 60  # characters of an input that a message repeats


@dataclass(frozen=True)
class Kind:
    """What sort of problem, for people who follow its `type` into /docs."""

    status: int
    title: str
    meaning: str


KINDS = {
    "content": Kind(422, "The request does not say what it must", "`at` says where to look"),
    "tree": Kind(422, "These brackets are not a tree", "see `line` and `column`"),
    "limit": Kind(422, "A limit of this service is exceeded", "see `limit` and `value`"),
    "body-limit": Kind(413, "The body is too large", "send less at once, or use /v1/batch"),
    "media-type": Kind(415, "The body is not JSON", "say content-type: application/json"),
    "not-found": Kind(404, "There is nothing here", "/docs lists what there is"),
    "method": Kind(405, "This method does nothing here", "the header Allow says what does"),
    "key": Kind(401, "A key is needed", "send Authorization: Bearer KEY"),
    "quota": Kind(429, "The quota of this key is used up", "come back after Retry-After seconds"),
    "overload": Kind(503, "The service is busy", "come back after Retry-After seconds"),
    "starting": Kind(503, "The service is starting", "come back after Retry-After seconds"),
    "deadline": Kind(504, "The time for one request is over", "send less at once"),
    "closed": Kind(499, "The client went away", "nobody reads this"),
    "model": Kind(409, "The new version is not usable", "the old one keeps answering"),
    "fault": Kind(500, "The service has a fault", "report it with the request's id"),
    "slow": Kind(408, "The request came too slowly", "send it faster"),
    "head-limit": Kind(431, "The head of the request is too large", "send shorter headers"),
    "http": Kind(400, "The request is not one this service understands", "see `detail`"),
}


class Refused(LpcfgError):
    """A request that this service turns away, and why."""

    def __init__(
        self, kind: str, detail: str, *, at: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.at = at
        self.retry_after = retry_after


class BodyLimitError(LimitError):
    """A body beyond the limit."""


def problem(kind: str, detail: str, **members: Any) -> Problem:
    """A problem of a kind."""
    known = KINDS[kind]
    return Problem(
        type=f"/docs#problem-{kind}",
        title=known.title,
        status=known.status,
        detail=detail,
        **members,
    )


def problem_of(error: LpcfgError, under: str = "") -> Problem:
    """What this error is to a client; `under` is where in the request its pointer starts."""
    match error:
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
            return problem("fault", "this is not the caller's fault: report it")


def encoded(value: Problem) -> bytes:
    """The problem as JSON, without the members that do not apply."""
    return json.dumps(value.model_dump(exclude_none=True), ensure_ascii=True).encode()


def response(value: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """The problem as an answer."""
    return Response(encoded(value), value.status, headers, media_type=MEDIA_TYPE)


def documented(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an endpoint that may answer these problems, and any endpoint's."""
    found: dict[int | str, dict[str, Any]] = {}
    for kind in (*kinds, "fault"):
        known = KINDS[kind]
        told = found.setdefault(known.status, {"model": Problem, "description": known.title})
        if known.title not in told["description"]:
            told["description"] += f"; {known.title[0].lower()}{known.title[1:]}"
    return {status: {**told, "content": {MEDIA_TYPE: {}}} for status, told in found.items()}


def retry_after(seconds: float) -> dict[str, str]:
    """The header, in whole seconds."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


# Handlers -----------------------------------------------------------------------------------------


def install(app: FastAPI) -> None:
    """Answer every failure of this application with a problem."""
    app.add_exception_handler(LpcfgError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_fault)


def _on_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, LpcfgError):
        raise error
    headers = {}
    if isinstance(error, Refused):
        if error.retry_after is not None:
            headers = retry_after(error.retry_after)
        if error.kind == "key":
            headers["WWW-Authenticate"] = "Bearer"
    return response(problem_of(error), headers)


def _on_http(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    kinds = {404: "not-found", 405: "method", 413: "body-limit"}
    kind = kinds.get(error.status_code, "http")
    if kind == "http":
        told = problem(kind, str(error.detail))
        return response(told.model_copy(update={"status": error.status_code}), error.headers)
    phrases = {
        "not-found": "expected a path that /docs lists, got another: correct it",
        "method": "expected one of the methods in the header Allow, got another: use one of them",
        "body-limit": "expected a smaller body: send less at once, or use /v1/batch",
    }
    return response(problem(kind, phrases[kind]), error.headers)


def _on_fault(_: Request, __: Exception) -> Response:
    return response(problem("fault", HTTPStatus(500).phrase))


def _on_validation(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return response(problem_of_validation(error.errors()))


def problem_of_validation(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """What pydantic found, as one problem: the first fault above, all of them below."""
    faults = [Fault(detail=_detail(one), at=_pointer(one["loc"])) for one in errors[:_MOST_FAULTS]]
    several = faults if len(faults) > 1 else None
    return problem("content", faults[0].detail, at=faults[0].at, errors=several)


def _detail(error: Mapping[str, Any]) -> str:
    message = str(error["msg"])
    if error["type"] == "missing":
        return "expected this member, got none: add it"
    if error["type"] == "extra_forbidden":
        return "expected no such member: remove it, or look for a misspelling"
    if error["type"] == "string_pattern_mismatch":
        return f"expected no white space but single blanks inside, got {_shown(error['input'])}"
    for lead in ("Input should be ", "Value error, "):
        if message.startswith(lead):
            expected = message.removeprefix(lead)
            got = "" if ", got " in expected else f", got {_shown(error.get('input'))}"
            return f"expected {expected}{got}"
    return f"{message}, got {_shown(error.get('input'))}"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} with {len(value)} members"
    text = json.dumps(value) if isinstance(value, str | int | float | None) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _pointer(location: Sequence[str | int]) -> str:
    """Where in the request, as a JSON pointer."""
    if location and location[0] in ("query", "path", "header"):
        return "#" + "/".join(map(str, location))
    at = ""
    for step in location[1:]:
        if step not in ALTERNATIVES:
            at += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return at
