"""Parse one sentence as a task with a JSON answer, or find its answer in the cache."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pydantic_core
from starlette.responses import Response

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, LimitError
from lpcfg.kinds.constituency.answer import analysis_json
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.sentences import Sentence
from lpcfg.serve.routes.inputs import check_tags, without_id
from lpcfg.serve.scheduling.admission import cost_of_tokens
from lpcfg.serve.scheduling.cache import Cache
from lpcfg.serve.scheduling.phases import phase
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.served import Served
from lpcfg.settings import Settings


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one sentence, and how many tokens the sentence has, for the metrics."""

    body: bytes
    tokens: int


def parse_task(
    cache: Cache,
    served: Served,
    sentence: Sentence,
    options: ParseOptions,
    stop: Stop,
    pointer: str,
) -> Task[Answer]:
    """Create the task that parses a sentence into JSON.

    `pointer` is the place of the sentence in the request, for errors. The cache keeps answers
    without the id, which each request chooses.
    """
    length = len(sentence.tokens)
    key = (served.reference.hash, without_id(sentence), options)
    known = cache.get(key)
    if known is not None:
        answer = Answer(with_id(sentence.id, known), length)
        return Task(lambda: answer, 0.0)

    def run() -> Answer:
        with located(pointer):
            check_tags(sentence, served.facts.tags)
            with phase("parse"):
                (found,) = served.parser.predict([sentence], options, stop)
        with phase("encode"):
            answer = analysis_json(found)
            del answer["id"]
            made = encoded(answer)
        cache.put(key, made)
        return Answer(with_id(sentence.id, made), length)

    return Task(run, cost_of_tokens(sentence.tokens))


def limited(tasks: Iterable[Task[Answer]], settings: Settings) -> list[Task[Answer]]:
    """Let the tasks of a request fail once their answers are larger together than they may be."""
    most, sizes = settings.max_answer_bytes, list[int]()

    def run(task: Task[Answer]) -> Answer:
        answer = task.run()
        sizes.append(len(answer.body))
        if sum(sizes) > most:
            raise LimitError(
                f"expected an answer of at most {most} bytes, got one of {sum(sizes)} or more: ask "
                "for fewer sentences or trees at once, or use /v1/batch",
                limit=most,
                value=sum(sizes),
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


def with_id(name: str | int | None, answer: bytes) -> bytes:
    """Return the answer with the id that its sentence came with."""
    told = b"null" if name is None else json.dumps(name).encode()
    return b'{"id":' + told + b"," + answer[1:]


def with_model(version: Mapping[str, Any], members: bytes) -> Response:
    """Return the answer to a request: the model that answered, and these members as JSON."""
    model = json.dumps(version).encode()
    return Response(b'{"model":' + model + b"," + members + b"}", media_type="application/json")


def encoded(value: Any) -> bytes:
    """Encode as compact JSON in UTF-8. Numbers keep all their digits.

    Raise ValueError for a number that JSON does not have.
    """
    made = pydantic_core.to_json(value)  # in a third of the time that the standard library takes
    if b"NaN" in made or b"Infinity" in made:  # a word, or such a number
        json.dumps(value, allow_nan=False)
    return made
