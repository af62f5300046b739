"""The endpoints that only models of constituents have: marginals and probabilities of trees."""

from collections.abc import Iterator

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, TreebankError
from lpcfg.kinds.constituency.answer import marginals_json, tree_probability_json
from lpcfg.kinds.registry import AnyLoaded, kind_named
from lpcfg.kinds.sentences import Sentence
from lpcfg.protocol.schemas import (
    MarginalsRequest,
    MarginalsResponse,
    TreesRequest,
    TreesResponse,
    counted,
)
from lpcfg.serve.http.context import context_of
from lpcfg.serve.http.encoder import Encoded, encoded
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import problem_of
from lpcfg.serve.http.requests import GuardedRoute, check_count
from lpcfg.serve.routes import inputs
from lpcfg.serve.routes.kinds import PROBLEMS
from lpcfg.serve.routes.tasks import Answer, answered, located
from lpcfg.serve.scheduling.admission import cost_of_text, cost_of_tokens, tokens_of_text
from lpcfg.serve.scheduling.phases import phase
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.served import version_of
from lpcfg.serve.state import TheService
from lpcfg.settings import Settings
from lpcfg.trees.brackets import write

router = APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[Depends(BEARER)])
KIND = kind_named("constituency")


@router.post(
    "/marginals",
    response_model=MarginalsResponse,
    responses=PROBLEMS,
    summary="Posteriors of labelled spans",
)
async def marginals(body: MarginalsRequest, request: Request, service: TheService) -> Response:
    """Return the probability of every labelled span of one sentence, down to the threshold.

    A sentence without tokens has the status `failed`, as in /v1/parse. A text without words is
    refused.
    """
    settings, stop = service.settings, service.stop()
    model = service.models.named(body.model, KIND)
    given = [body.text or ""] if body.sentences is None else body.sentences
    pointer = "/text" if body.sentences is None else "/sentences/0"
    inputs.admit(service, request, None, given)

    def run(sentence: Sentence) -> Answer:
        with located(pointer):
            KIND.check(model.predictor, sentence)
            return Answer(_marginals(model, sentence, body, stop), len(sentence.tokens))

    def tasks() -> Iterator[Task[Answer]]:
        sentence = inputs.sentence_of(given[0], model.segmenter, settings, pointer)
        _check_words(body, sentence)
        _check_spans(body, sentence)
        yield Task(lambda: run(sentence), cost_of_tokens(sentence.tokens))

    estimate = inputs.estimate(None, given, settings)
    [answer] = await answered(service, request, "/v1/marginals", model, tasks, estimate, stop)
    return Response(answer.body, media_type="application/json")


def _marginals(model: AnyLoaded, sentence: Sentence, body: MarginalsRequest, stop: Stop) -> Encoded:
    spans = None if body.spans is None else [(one.start, one.end) for one in body.spans]
    with phase("parse"):
        found = model.predictor.marginals(
            sentence,
            threshold=body.threshold,
            spans=spans,
            raw=body.raw,
            calibrated=not body.raw,
            rescore=body.rescore,
            stop=stop,
        )
    places = sentence.offsets or [(None, None)] * len(sentence.tokens)
    tokens = [
        {"text": text, "start": start, "end": end}
        for text, (start, end) in zip(sentence.tokens, places, strict=True)
    ]
    with phase("encode"):
        told = {"model": version_of(model), "id": sentence.id, "tokens": tokens}
        return encoded({**told, **marginals_json(found)})


@router.post(
    "/tree-probability",
    response_model=TreesResponse,
    responses=PROBLEMS,
    summary="Probabilities of trees",
)
async def tree_probability(body: TreesRequest, request: Request, service: TheService) -> Response:
    """Return log p(tree) and log p(tree | sentence), or what the grammar lacks for a tree.

    A tree with faulty brackets gets a problem with line and column; the other trees are answered.
    """
    settings, stop = service.settings, service.stop()
    model = service.models.named(body.model, KIND)
    check_count("trees", len(body.trees), settings.max_sentences, "/trees")
    service.charge(context_of(request.scope), sum(map(tokens_of_text, body.trees)))

    def task(number: int, text: str) -> Task[Answer]:
        at = f"/trees/{number}"
        return Task(
            lambda: _tree_probability(model, text, body.rescore, settings, stop, at),
            cost_of_text(text, settings.max_tokens),
        )

    def tasks() -> Iterator[Task[Answer]]:
        return (task(number, text) for number, text in enumerate(body.trees))

    path, estimate = "/v1/tree-probability", inputs.estimate(None, body.trees, settings)
    answers = await answered(service, request, path, model, tasks, estimate, stop)
    told = encoded({"model": version_of(model), "trees": [one.body for one in answers]})
    return Response(told, media_type="application/json")


_NO_PROBABILITY = dict.fromkeys(
    (
        "log_probability",
        "sign",
        "sentence_log_probability",
        "conditional_log_probability",
        "reason",
        "tree",
        "missing",
    )
)


def _tree_probability(
    model: AnyLoaded, text: str, rescore: bool, settings: Settings, stop: Stop, at: str
) -> Answer:
    try:
        tree = inputs.tree_of(text, settings, at)
    except (TreebankError, InputError) as error:
        under = at if isinstance(error, TreebankError) else ""
        problem = problem_of(error, under).model_dump(exclude_none=True)
        return Answer(encoded({**_NO_PROBABILITY, "problem": problem}), 0)
    with phase("parse"):
        [found] = model.predictor.tree_probability([tree], stop, rescore=rescore)
    drawn = {"tree": write(tree), "missing": found.missing}
    told = encoded({**tree_probability_json(found), **drawn, "problem": None})
    return Answer(told, len(tree.tokens()))


def _check_words(body: MarginalsRequest, sentence: Sentence) -> None:
    if body.sentences is None and not sentence.tokens:
        raise InputError(
            "expected a sentence, got a text without words: send at least one word",
            pointer="/text",
        )


def _check_spans(body: MarginalsRequest, sentence: Sentence) -> None:
    for number, span in enumerate(body.spans or ()):
        if span.end > len(sentence.tokens):
            raise InputError(
                f"expected a span within {counted(len(sentence.tokens), 'token')}, got end "
                f"{span.end}: `start` and `end` count tokens from 0",
                pointer=f"/spans/{number}/end",
            )
