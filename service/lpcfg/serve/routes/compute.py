"""The endpoints that compute: parse, marginals, tree probabilities, and batches of lines."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, LimitError, TreebankError
from lpcfg.kinds.constituency.answer import marginals_json, tree_probability_json
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.sentences import Sentence
from lpcfg.protocol.schemas import (
    BatchLine,
    BatchParameters,
    MarginalsRequest,
    MarginalsResponse,
    ParseRequest,
    ParseResponse,
    TreesRequest,
    TreesResponse,
    counted,
)
from lpcfg.serve.http.bodies import GuardedRoute, pieces
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.limits import check_count
from lpcfg.serve.http.problems import documented, problem_of
from lpcfg.serve.routes import inputs
from lpcfg.serve.routes.batch import ANSWERED, LINES, Batch, LinesResponse
from lpcfg.serve.routes.lines import Lines
from lpcfg.serve.routes.tasks import Answer, encoded, limited, located, parse_task, with_model
from lpcfg.serve.scheduling.admission import cost_of_text, cost_of_tokens, tokens_of_text
from lpcfg.serve.scheduling.phases import phase
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.served import Served
from lpcfg.serve.state import Service, TheService, asker_of
from lpcfg.settings import Settings
from lpcfg.trees.brackets import write

router = APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[Depends(BEARER)])
PROBLEMS = documented(
    "content",
    "limit",
    "body-limit",
    "media-type",
    "key",
    "quota",
    "overload",
    "starting",
    "deadline",
)


@router.post(
    "/parse",
    response_model=ParseResponse,
    responses=PROBLEMS,
    summary="Parse text or sentences",
)
async def parse(body: ParseRequest, request: Request, service: TheService) -> Response:
    """Parse a text or sentences: one answer for each sentence, in order.

    A sentence for which no analysis is found has an answer too, with a reason.
    """
    settings, served, stop = service.settings, service.models.named(body.model), service.stop()
    check_parses(body.k, settings)
    admit_sentences(service, request, body.text, body.sentences)
    options = ParseOptions(k=body.k, objective=body.objective, rescore=body.rescore)

    def prepare() -> list[Task[Answer]]:
        sentences = inputs.sentences_of(body.text, body.sentences, settings, stop)
        tasks = (
            parse_task(service.cache, served, one, options, stop, f"/sentences/{number}")
            for number, one in enumerate(sentences)
        )
        return limited(tasks, settings)

    estimate = inputs.estimate(body.text, body.sentences, settings)
    answers = await service.compute(request, prepare, estimate, stop)
    service.done(asker_of(request), "/v1/parse", served.version, [one.tokens for one in answers])
    parts = b",".join(one.body for one in answers)
    return with_model(served.version, b'"sentences":[' + parts + b"]")


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
    settings, served, stop = service.settings, service.models.named(body.model), service.stop()
    given = [body.text or ""] if body.sentences is None else body.sentences
    pointer = "/text" if body.sentences is None else "/sentences/0"
    admit_sentences(service, request, None, given)

    def run(sentence: Sentence) -> Answer:
        with located(pointer):
            inputs.check_tags(sentence, served.facts.tags)
            return Answer(_marginals(served, sentence, body, stop), len(sentence.tokens))

    def prepare() -> list[Task[Answer]]:
        sentence = inputs.sentence_of(given[0], settings, pointer)
        _check_words(body, sentence)
        _check_spans(body, sentence)
        return limited([Task(lambda: run(sentence), cost_of_tokens(sentence.tokens))], settings)

    estimate = inputs.estimate(None, given, settings)
    [answer] = await service.compute(request, prepare, estimate, stop)
    service.done(asker_of(request), "/v1/marginals", served.version, [answer.tokens])
    return with_model(served.version, answer.body[1:-1])


def _marginals(served: Served, sentence: Sentence, body: MarginalsRequest, stop: Stop) -> bytes:
    spans = None if body.spans is None else [(one.start, one.end) for one in body.spans]
    with phase("parse"):
        found = served.parser.marginals(
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
        return encoded({"id": sentence.id, "tokens": tokens, **marginals_json(found)})


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
    settings, served, stop = service.settings, service.models.named(body.model), service.stop()
    check_count("trees", len(body.trees), settings.max_sentences, "/trees")
    service.charge(asker_of(request), sum(map(tokens_of_text, body.trees)))

    def task(number: int, text: str) -> Task[Answer]:
        at = f"/trees/{number}"
        return Task(
            lambda: _tree_probability(served, text, body.rescore, settings, stop, at),
            cost_of_text(text, settings.max_tokens),
        )

    def prepare() -> list[Task[Answer]]:
        return [task(number, text) for number, text in enumerate(body.trees)]

    estimate = inputs.estimate(None, body.trees, settings)
    answers = await service.compute(request, prepare, estimate, stop)
    lengths = [one.tokens for one in answers]
    service.done(asker_of(request), "/v1/tree-probability", served.version, lengths)
    return with_model(served.version, b'"trees":[' + b",".join(one.body for one in answers) + b"]")


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
    served: Served, text: str, rescore: bool, settings: Settings, stop: Stop, at: str
) -> Answer:
    try:
        tree = inputs.tree_of(text, settings, at)
    except (TreebankError, InputError) as error:
        under = at if isinstance(error, TreebankError) else ""
        problem = problem_of(error, under).model_dump(exclude_none=True)
        return Answer(encoded({**_NO_PROBABILITY, "problem": problem}), 0)
    with phase("parse"):
        [found] = served.parser.tree_probability([tree], stop, rescore=rescore)
    drawn = {"tree": write(tree), "missing": found.missing}
    told = encoded({**tree_probability_json(found), **drawn, "problem": None})
    return Answer(told, len(tree.tokens()))


@router.post(
    "/batch",
    response_class=LinesResponse,
    responses={
        200: {"description": ANSWERED, "model": BatchLine},
        **documented("content", "limit", "media-type", "key", "overload", "starting"),
    },
    openapi_extra=LINES,
    summary="Parse line by line",
)
async def batch(
    request: Request,
    service: TheService,
    asked: Annotated[BatchParameters, Query()],
) -> Response:
    """Answer each line of the body with a sentence or a problem, in order, as soon as it is done.

    Memory stays bounded for a batch of any length: the service reads on only as fast as its answers
    are read.
    """
    with located("#query"):
        check_parses(asked.k, service.settings)
        served = service.models.named(asked.model)
    options = ParseOptions(k=asked.k, objective=asked.objective, rescore=asked.rescore)

    def task_of(sentence: Sentence, stop: Stop) -> Task[Answer]:
        return parse_task(service.cache, served, sentence, options, stop, "")

    lines = Lines(service, served.version, task_of, asker_of(request), request.url.path)
    return LinesResponse(Batch(service, request, pieces(request), lines))


# Shared -------------------------------------------------------------------------------------------


def check_parses(k: int, settings: Settings) -> None:
    """Raise LimitError if more trees are asked for than may be."""
    if k > settings.max_parses:
        raise LimitError(
            f"expected at most {settings.max_parses} trees for a sentence, got k = {k}: ask for "
            "fewer",
            limit=settings.max_parses,
            value=k,
            pointer="/k",
        )


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


def admit_sentences(
    service: Service, request: Request, text: str | None, given: Sequence[inputs.AnyInput] | None
) -> None:
    """Raise if there are too many sentences, or more tokens than are left in the key's quota."""
    check_count("sentences", len(given or ()), service.settings.max_sentences, "/sentences")
    service.charge(asker_of(request), inputs.tokens_in(text, given))
