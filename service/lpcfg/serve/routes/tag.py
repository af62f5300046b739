"""POST /v1/tag: each token's tag, with its probability."""

from functools import partial

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError
from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags.answer import tagged_json
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.protocol.schemas import TagRequest, TagResponse
from lpcfg.serve.http.bodies import GuardedRoute
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import documented
from lpcfg.serve.routes import inputs
from lpcfg.serve.routes.compute import PROBLEMS, admit_sentences
from lpcfg.serve.routes.tasks import Answer, encoded, located, with_model
from lpcfg.serve.scheduling.phases import phase
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.state import TheService, asker_of

router = APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[Depends(BEARER)])
_EACH, _WORD = 1e-4, 1e-4
"""Seconds of CPU for a sentence, and for a word."""


@router.post(
    "/tag",
    response_model=TagResponse,
    responses={**PROBLEMS, **documented("not-found")},
    summary="Tag text or sentences",
)
async def tag(
    body: TagRequest,
    request: Request,
    service: TheService,
) -> Response:
    """Tag the words of each sentence, in order. A sentence without tokens has failed.

    Tags that come with tokens stay, and help to find the others.
    """
    settings, stop = service.settings, service.stop()
    tagger, version = service.models.tagger(body.model)
    admit_sentences(service, request, body.text, body.sentences)

    def prepare() -> list[Task[Answer]]:
        sentences = inputs.sentences_of(body.text, body.sentences, settings, stop)
        return [
            Task(
                partial(_answered, tagger, one, f"/sentences/{number}", stop),
                _EACH + _WORD * len(one.tokens),
            )
            for number, one in enumerate(sentences)
        ]

    estimate = inputs.estimate(body.text, body.sentences, settings)
    answers = await service.compute(request, prepare, estimate, stop)
    service.done(asker_of(request), "/v1/tag", version, [one.tokens for one in answers])
    parts = b",".join(one.body for one in answers)
    return with_model(version, b'"sentences":[' + parts + b"]")


def _answered(tagger: SequenceTagger, sentence: Sentence, pointer: str, stop: Stop) -> Answer:
    stop.check()
    with located(pointer):
        inputs.check_tags(sentence, tagger.tags)
        if sentence.constraints:
            raise InputError(
                "expected tokens without constraints, got some: a tagger uses none, leave them out",
                pointer="/constraints",
            )
        with phase("tag"):
            found = tagger.tag(sentence) if sentence.tokens else None
    with phase("encode"):
        return Answer(encoded(tagged_json(sentence, found)), len(sentence.tokens))
