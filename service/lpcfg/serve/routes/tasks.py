"""Answer single sentences by a model of any kind: as tasks for the workers, or from the cache."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import partial

import pydantic_core
from starlette.requests import Request

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, LimitError
from lpcfg.base.options import Options
from lpcfg.kinds.registry import AnyLoaded
from lpcfg.kinds.sentences import Sentence
from lpcfg.serve.http.context import context_of
from lpcfg.serve.http.encoder import encoded
from lpcfg.serve.scheduling.admission import cost_of_tokens
from lpcfg.serve.scheduling.cache import Cache
from lpcfg.serve.scheduling.phases import phase
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.state import Service
from lpcfg.settings import Settings


class Form(Enum):
    """The types of answers. A request that accepts none of the first two gets the last."""

    CONLLU = "text/x-conllu"
    LINES = "application/x-ndjson"
    JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one sentence, in JSON or another form, with the id in it, and how many tokens
    the sentence has, for the metrics.
    """

    body: bytes
    tokens: int
    id: str | int | None = None

    def with_id(self, name: str | int | None) -> "Answer":
        """Return the same answer in JSON, to a sentence that came with another id."""
        if name == self.id:
            return self
        told = {**pydantic_core.from_json(self.body), "id": name}
        return replace(self, body=encoded(told), id=name)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which model is to answer sentences, under which options, in which form."""

    model: AnyLoaded
    options: Options
    form: Form = Form.JSON

    def task(self, cache: Cache[Answer], one: Sentence, stop: Stop, pointer: str) -> Task[Answer]:
        """Create the task that answers a sentence.

        `pointer` is the place of the sentence in the request, for errors. The cache keeps answers
        whatever their id, which each request chooses.
        """
        plain = one if one.id is None else replace(one, id=None)
        key = self.model.reference.hash, self.options, self.form is Form.CONLLU, plain
        known = cache.get(key)
        if known is not None:
            again = known if self.form is Form.CONLLU else known.with_id(one.id)
            return Task(lambda: again, 0.0)

        def run() -> Answer:
            with located(pointer):
                answer = Answer(self._body(one, stop), len(one.tokens), one.id)
            cache.put(key, answer, len(answer.body))
            return answer

        return Task(run, cost_of_tokens(one.tokens))

    def _body(self, sentence: Sentence, stop: Stop) -> bytes:
        model, kind = self.model, self.model.kind
        kind.check(model.predictor, sentence)
        with phase(kind.command):
            (found,) = kind.predict(model.predictor, [sentence], self.options, stop)
        with phase("encode"):
            if self.form is not Form.CONLLU:
                return encoded(kind.answer(found))
            text = kind.text(found, "conllu", self.options)
            return f"# failed: {found.reason}\n".encode() if text is None else f"{text}\n".encode()


async def answered(
    service: Service,
    request: Request,
    endpoint: str,
    model: AnyLoaded,
    tasks: Callable[[], Iterable[Task[Answer]]],
    estimate: float,
    stop: Stop,
) -> list[Answer]:
    """Compute the answers to a request, which are no larger together than allowed; count them."""

    def prepare() -> Sequence[Task[Answer]]:
        return _limited(tasks(), service.settings.max_answer_bytes)

    answers = await service.compute(request, prepare, estimate, stop)
    lengths = [one.tokens for one in answers]
    service.done(context_of(request.scope), endpoint, model.reference.hash, lengths)
    return answers


def _limited(tasks: Iterable[Task[Answer]], most: int) -> list[Task[Answer]]:
    """Let the tasks of a request fail once their answers are larger together than they may be."""
    sizes: list[int] = []  # which threads add to

    def run(task: Task[Answer]) -> Answer:
        answer = task.run()
        sizes.append(len(answer.body))
        if (size := sum(sizes)) > most:
            raise LimitError(
                f"expected an answer of at most {most} bytes, got one of {size} or more: ask for "
                "less at once, or use /v1/batch",
                limit=most,
                value=size,
            )
        return answer

    return [Task(partial(run, one), one.cost) for one in tasks]


@contextmanager
def located(pointer: str) -> Iterator[None]:
    """Add the place of a sentence in the request to the errors raised inside."""
    try:
        yield
    except InputError as error:
        error.pointer = pointer + error.pointer
        raise


def check_bounds(options: Options, settings: Settings) -> None:
    """Raise LimitError for an option beyond the setting that bounds it."""
    for name, bound in _bounded(options):
        value, most = getattr(options, name), getattr(settings, bound)
        if value > most:
            raise LimitError(
                f"expected `{name}` of at most {most}, got {value}: ask for less",
                limit=most,
                value=value,
                pointer=f"/{name}",
            )


def growth(options: Options) -> int:
    """Tell how many times as long an answer may be as with the least of what settings bound."""
    return math.prod(max(getattr(options, name), 1) for name, _ in _bounded(options))


def _bounded(options: Options) -> list[tuple[str, str]]:
    """List the options that answers grow with, and the settings that bound them."""
    found = [(one.name, one.metadata["bound"]) for one in fields(options)]
    return [(name, bound) for name, bound in found if bound is not None]
