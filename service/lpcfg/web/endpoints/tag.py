"""POST /v1/tag: each token's tag, with its probability."""

from functools import partial

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from lpcfg.cancel import Stop
from lpcfg.errors import InputError
from lpcfg.parsing.results import Sentence
from lpcfg.protocol.schemas import TagRequest, TagResponse
from lpcfg.sequences.tagger import SequenceTagger
from lpcfg.sequences.to_json import tagged_json
from lpcfg.web.endpoints import inputs
from lpcfg.web.endpoints.compute import PROBLEMS, admit_sentences
from lpcfg.web.endpoints.tasks import Answer, encoded, located, with_model
from lpcfg.web.http.bodies import GuardedRoute
from lpcfg.web.http.keys import BEARER
from lpcfg.web.http.problems import documented
from lpcfg.web.scheduling.phases import phase
from lpcfg.web.scheduling.work import Task
from lpcfg.web.state import TheService, asker_of

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
