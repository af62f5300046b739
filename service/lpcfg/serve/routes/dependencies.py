"""POST /v1/dependencies, and batches: each token's head and relation, with their probabilities."""

from enum import Enum
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from lpcfg.base.cancel import Stop
from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies.answer import FAILED, parsed_json
from lpcfg.kinds.dependencies.predict import DependencyParser, ParsedArcs, check_plain
from lpcfg.kinds.sentences import Sentence
from lpcfg.protocol.schemas import (
    DependenciesRequest,
    DependenciesResponse,
    DependencyBatchLine,
    DependencyBatchParameters,
)
from lpcfg.serve.http.bodies import GuardedRoute, pieces
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import documented
from lpcfg.serve.routes import inputs
from lpcfg.serve.routes.batch import ANSWERED, LINES, Batch, LinesResponse
from lpcfg.serve.routes.compute import PROBLEMS, admit_sentences
from lpcfg.serve.routes.lines import Lines
from lpcfg.serve.routes.tasks import Answer, encoded, limited, located, with_model
from lpcfg.serve.scheduling.admission import cost_of_tokens
from lpcfg.serve.scheduling.phases import phase
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.state import TheService, asker_of

router = APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[Depends(BEARER)])


class Form(Enum):
    """The types of answers. A request that accepts none of the first two gets the last."""

    CONLLU = "text/x-conllu"
    LINES = "application/x-ndjson"
    JSON = "application/json"


@router.post(
    "/dependencies",
    response_model=DependenciesResponse,
    responses={
        200: {
            "description": "An answer for each sentence, in order. As CoNLL-U where the request "
            f"accepts `{Form.CONLLU.value}`: a failed sentence is then a comment. As a line for "
            f"each sentence, an object like those in `sentences`, where it accepts "
            f"`{Form.LINES.value}`.",
            "content": {
                form.value: {"schema": {"type": "string"}} for form in (Form.CONLLU, Form.LINES)
            },
        },
        **PROBLEMS,
        **documented("not-found"),
    },
    summary="Parse into dependency trees",
)
async def dependencies(
    body: DependenciesRequest,
    request: Request,
    service: TheService,
) -> Response:
    """Answer each sentence, in order. A sentence without tokens has failed.

    Heads count tokens from 1, as CoNLL-U does; the root's head is 0.
    """
    settings, stop = service.settings, service.stop()
    parser, version = service.models.dependencies(body.model)
    admit_sentences(service, request, body.text, body.sentences)
    accepted = request.headers.get("accept", "")
    form = next((one for one in Form if one.value in accepted), Form.JSON)

    def prepare() -> list[Task[Answer]]:
        sentences = inputs.sentences_of(body.text, body.sentences, settings, stop)
        for number, one in enumerate(sentences):
            check_plain(one, f"/sentences/{number}")
        tasks = (
            Task(partial(_answered, parser, one, stop, form), cost_of_tokens(one.tokens))
            for one in sentences
        )
        return limited(tasks, settings)

    estimate = inputs.estimate(body.text, body.sentences, settings)
    answers = await service.compute(request, prepare, estimate, stop)
    service.done(asker_of(request), "/v1/dependencies", version, [one.tokens for one in answers])
    parts = [one.body for one in answers]
    if form is Form.JSON:
        return with_model(version, b'"sentences":[' + b",".join(parts) + b"]")
    charset = "; charset=utf-8" if form is Form.CONLLU else ""
    return Response(b"".join(parts), media_type=form.value + charset)


@router.post(
    "/dependencies/batch",
    response_class=LinesResponse,
    responses={
        200: {"description": ANSWERED, "model": DependencyBatchLine},
        **documented(
            *("content", "limit", "media-type", "key", "overload", "starting", "not-found")
        ),
    },
    openapi_extra=LINES,
    summary="Parse line by line into dependency trees",
)
async def batch(
    request: Request,
    service: TheService,
    asked: Annotated[DependencyBatchParameters, Query()],
) -> Response:
    """Answer each line of the body with a tree or a problem, in order, as soon as it is done.

    Memory stays bounded for a batch of any length, as for /v1/batch.
    """
    with located("#query"):
        parser, version = service.models.dependencies(asked.model)

    def task_of(sentence: Sentence, stop: Stop) -> Task[Answer]:
        check_plain(sentence, "")
        run = partial(_answered, parser, sentence, stop, Form.JSON)
        return Task(run, cost_of_tokens(sentence.tokens))

    lines = Lines(service, version, task_of, asker_of(request), request.url.path)
    return LinesResponse(Batch(service, request, pieces(request), lines))


def _answered(parser: DependencyParser, sentence: Sentence, stop: Stop, form: Form) -> Answer:
    return Answer(_answer_body(parser, sentence, stop, form), len(sentence.tokens))


def _answer_body(parser: DependencyParser, sentence: Sentence, stop: Stop, form: Form) -> bytes:
    found: ParsedArcs | None = None
    if sentence.tokens:
        with phase("parse"):
            [found] = parser.parse(sentence, stop=stop)
    if form is Form.CONLLU:
        if found is None:
            return f"# failed: {FAILED}\n".encode()
        return conllu.write([found.conllu()]).encode()
    with phase("encode"):
        made = encoded(parsed_json(found, text=sentence.text, identifier=sentence.id))
    return made + b"\n" if form is Form.LINES else made
