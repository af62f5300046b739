"""POST /v1/dependencies: each token's head and relation, with their probabilities."""

import json
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from lpcfg.cancel import Stop
from lpcfg.dependencies import conllu
from lpcfg.dependencies.parser import DependencyParser, ParsedArcs, check_plain
from lpcfg.dependencies.to_json import parsed_json
from lpcfg.parsing.results import Sentence
from lpcfg.protocol.schemas import DependenciesRequest, DependenciesResponse
from lpcfg.web.endpoints import inputs
from lpcfg.web.endpoints.compute import PROBLEMS, admit_sentences
from lpcfg.web.endpoints.tasks import Answer, encoded
from lpcfg.web.http.bodies import GuardedRoute
from lpcfg.web.http.keys import BEARER
from lpcfg.web.http.problems import documented
from lpcfg.web.scheduling.admission import cost
from lpcfg.web.scheduling.work import Task
from lpcfg.web.state import Service, service_of

router = APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[Depends(BEARER)])
CONLLU = "text/x-conllu"


@router.post(
    "/dependencies",
    response_model=DependenciesResponse,
    responses={
        200: {
            "description": "An answer for each sentence, in order; as CoNLL-U where the request "
            f"accepts `{CONLLU}`. A failed sentence is then a comment.",
            "content": {CONLLU: {"schema": {"type": "string"}}},
        },
        **PROBLEMS,
        **documented("not-found"),
    },
    summary="Parse into dependency trees",
)
async def dependencies(
    body: DependenciesRequest,
    request: Request,
    service: Annotated[Service, Depends(service_of)],
) -> Response:
    """Answer each sentence, in order. A sentence without tokens has failed.

    Heads count tokens from 1, as CoNLL-U does; the root's head is 0.
    """
    settings, stop = service.settings, service.stop()
    parser, version = service.models.dependencies(body.model)
    admit_sentences(service, request, body.text, body.sentences)
    as_conllu = CONLLU in request.headers.get("accept", "")

    def prepare() -> list[Task[Answer]]:
        sentences = inputs.sentences_of(body.text, body.sentences, settings, stop)
        for number, one in enumerate(sentences):
            check_plain(one, number)
        return [
            Task(partial(_answered, parser, one, stop, as_conllu), cost(len(one.tokens)))
            for one in sentences
        ]

    estimate = inputs.estimate(body.text, body.sentences, settings)
    answers = await service.compute(request, prepare, estimate, stop)
    service.done(request, "/v1/dependencies", version, [one.tokens for one in answers])
    parts = [one.body for one in answers]
    if as_conllu:
        return Response(b"".join(parts), media_type=f"{CONLLU}; charset=utf-8")
    model = json.dumps(version).encode()
    return Response(
        b'{"model":' + model + b',"sentences":[' + b",".join(parts) + b"]}",
        media_type="application/json",
    )


def _answered(parser: DependencyParser, sentence: Sentence, stop: Stop, as_conllu: bool) -> Answer:
    made = _answer_body(parser, sentence, stop, as_conllu)
    return Answer(made, len(sentence.tokens))


def _answer_body(
    parser: DependencyParser, sentence: Sentence, stop: Stop, as_conllu: bool
) -> bytes:
    found: ParsedArcs | None = None
    if sentence.tokens:
        [found] = parser.parse(sentence, stop=stop)
    if as_conllu:
        if found is None:
            return b"# failed: the sentence has no words\n"
        return conllu.write([found.conllu()]).encode()
    return encoded(parsed_json(found, text=sentence.text, identifier=sentence.id))
