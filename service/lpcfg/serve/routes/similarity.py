"""The endpoint for the similarity of sentences. It exists if a measure is configured."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from lpcfg.protocol.schemas import PairInput, SimilarityRequest, SimilarityResponse
from lpcfg.serve.http.context import context_of
from lpcfg.serve.http.encoder import Encoded, encoded
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import Refused, documented
from lpcfg.serve.http.requests import GuardedRoute, check_count, check_length
from lpcfg.serve.scheduling.admission import tokens_of_text
from lpcfg.serve.scheduling.phases import phase
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.state import TheService
from lpcfg.settings import Settings
from lpcfg.text.tokenize import tokenize
from lpcfg.words.similarity import Similarity, comparison

router = APIRouter(prefix="/v1", route_class=GuardedRoute, dependencies=[Depends(BEARER)])
# Seconds for one pair: overhead and per character, measured on pairs of 15 and 42 tokens (0.5 and
# 1.2 ms), in the unit of scheduling.admission.
_EACH, _LINEAR = 1e-4, 6e-6
_Compared = tuple[Encoded, list[int]]
"""The answer to a pair, and how many tokens its sentences have."""


@router.post(
    "/similarity",
    response_model=SimilarityResponse,
    responses=documented(
        *("content", "limit", "body-limit", "media-type", "not-found", "key", "quota"),
        *("overload", "starting", "deadline"),
    ),
    summary="How similar two sentences are",
)
async def similarity(body: SimilarityRequest, request: Request, service: TheService) -> Response:
    """Score pairs of sentences, in order, and align the words that are most similar.

    A sentence is one string. Both of a pair count towards a key's quota.
    """
    measure, settings, stop = service.similarity, service.settings, service.stop()
    if measure is None:
        raise Refused(
            "not-found",
            "expected a service with a measure of similarity, got one without: start it with "
            "LPCFG_SIMILARITY_FILE",
        )
    check_count("pairs", len(body.pairs), settings.max_sentences, "/pairs")
    service.charge(
        context_of(request.scope),
        sum(tokens_of_text(one) for pair in body.pairs for one in (pair.first, pair.second)),
    )

    def task(number: int, pair: PairInput) -> Task[_Compared]:
        def run() -> _Compared:
            return _compared(measure, pair, settings, f"/pairs/{number}")

        return Task(run, _cost(pair))

    def prepare() -> list[Task[_Compared]]:
        return [task(number, pair) for number, pair in enumerate(body.pairs)]

    answers = await service.compute(request, prepare, sum(map(_cost, body.pairs)), stop)
    lengths = [length for _, both in answers for length in both]
    service.done(context_of(request.scope), "/v1/similarity", None, lengths)
    told = {"scale": measure.scale, "pairs": [pair for pair, _ in answers]}
    return Response(encoded(told), media_type="application/json")


def _cost(pair: PairInput) -> float:
    return _EACH + _LINEAR * (len(pair.first) + len(pair.second))


def _compared(measure: Similarity, pair: PairInput, settings: Settings, pointer: str) -> _Compared:
    """Compare the sentences of a pair, neither of more tokens than allowed."""
    lengths = []
    for name, text in (("first", pair.first), ("second", pair.second)):
        lengths.append(len(tokenize(text, most=10 * settings.max_tokens)))
        check_length(lengths[-1], settings, f"{pointer}/{name}")
    with phase("compare"):
        return encoded(comparison(measure, (pair.first, pair.second))), lengths
