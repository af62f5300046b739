"""The endpoint of each kind of models, POST /v1/COMMAND: text or sentences in, answers out."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, create_model
from starlette.responses import Response

from lpcfg.kinds.registry import AnyKind, all_kinds
from lpcfg.protocol.options import members_of
from lpcfg.protocol.schemas import Answers, SentencesRequest
from lpcfg.serve.http.encoder import encoded, encoded_lines
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import documented
from lpcfg.serve.http.requests import GuardedRoute
from lpcfg.serve.routes import inputs
from lpcfg.serve.routes.tasks import Answer, Asked, Form, answered, check_bounds
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.served import version_of
from lpcfg.serve.state import TheService
from lpcfg.settings import Settings

PROBLEMS = documented(
    *("content", "limit", "body-limit", "media-type", "key", "quota", "overload", "starting"),
    *("deadline", "not-found"),
)
_FORMS = {
    Form.CONLLU: "CoNLL-U, where a failed sentence is a comment",
    Form.LINES: "a line for each sentence, an object like those in `sentences`",
}


def router_of(settings: Settings) -> APIRouter:
    """Create the endpoints of all kinds, for a service with these settings."""
    router = APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[Depends(BEARER)])
    for kind in all_kinds():
        forms = [form for form in _FORMS if form is not Form.CONLLU or "conllu" in kind.forms]
        router.post(
            f"/{kind.command}",
            response_model=_response_model(kind),
            responses={**_in_other_forms(forms), **PROBLEMS},
            summary=(kind.__doc__ or kind.title).partition(".")[0],
        )(_endpoint(kind, _request_model(kind, settings), forms))
    return router


def _request_model(kind: AnyKind, settings: Settings) -> type[BaseModel]:
    members = members_of(kind.options, lambda setting: getattr(settings, setting))
    made: type[BaseModel] = create_model(
        f"{kind.command.title()}Request",
        __base__=SentencesRequest,
        __config__=ConfigDict(json_schema_extra={"examples": list(kind.examples)}),
        __doc__=f"Text or sentences for a {kind.title}.",
        **members,
    )
    return made


def _response_model(kind: AnyKind) -> type[BaseModel]:
    shape: Any = kind.schema()
    made: type[BaseModel] = create_model(
        f"{kind.command.title()}Response", __base__=Answers[shape], __doc__=Answers.__doc__
    )
    return made


def _in_other_forms(forms: list[Form]) -> dict[int | str, dict[str, Any]]:
    others = "; ".join(f"{_FORMS[one]}, where it accepts `{one.value}`" for one in forms)
    return {
        200: {
            "description": f"An answer for each sentence, in order; or {others}.",
            "content": {one.value: {"schema": {"type": "string"}} for one in forms},
        }
    }


def _endpoint(kind: AnyKind, model: type[BaseModel], forms: list[Form]) -> Any:
    path, names = f"/v1/{kind.command}", [one.name for one in fields(kind.options)]

    async def endpoint(body: Any, request: Request, service: TheService) -> Response:
        """Answer each sentence, in order. One for which there is no answer has failed, with a
        reason.
        """
        settings, stop = service.settings, service.stop()
        served = service.models.named(body.model, kind)
        options = kind.options(**{name: getattr(body, name) for name in names})
        check_bounds(options, settings)
        accepted = request.headers.get("accept", "")
        form = next((one for one in forms if one.value in accepted), Form.JSON)
        asked = Asked(served, options, form)
        inputs.admit(service, request, body.text, body.sentences)

        def tasks() -> Iterator[Task[Answer]]:
            found = inputs.sentences_of(body.text, body.sentences, served.segmenter, settings, stop)
            for number, one in enumerate(found):
                yield asked.task(service.cache, one, stop, f"/sentences/{number}")

        estimate = inputs.estimate(body.text, body.sentences, settings)
        answers = await answered(service, request, path, served, tasks, estimate, stop)
        return _response(asked, answers)

    endpoint.__name__ = kind.command
    endpoint.__annotations__["body"] = model
    return endpoint


def _response(asked: Asked, answers: list[Answer]) -> Response:
    parts: list[Any] = [one.body for one in answers]
    if asked.form is Form.CONLLU:
        return Response(b"".join(parts), media_type=f"{asked.form.value}; charset=utf-8")
    if asked.form is Form.LINES:
        return Response(encoded_lines(parts), media_type=asked.form.value)
    told = {"model": version_of(asked.model), "sentences": parts}
    return Response(encoded(told), media_type=asked.form.value)
