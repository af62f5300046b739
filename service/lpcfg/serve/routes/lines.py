"""Answer lines, each a sentence as JSON, with a sentence or a problem: for batches and jobs."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lpcfg.base.errors import InputError, LimitError, LpcfgError
from lpcfg.protocol.schemas import Problem, SentenceInput
from lpcfg.serve.http.context import Context
from lpcfg.serve.http.encoder import encoded, encoded_lines
from lpcfg.serve.http.problems import Refused, json_of, problem_of, problem_of_validation
from lpcfg.serve.http.requests import check_sentence, decoded, read_json
from lpcfg.serve.routes import inputs
from lpcfg.serve.routes.tasks import Answer, Asked
from lpcfg.serve.scheduling.admission import Priority
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.served import version_of
from lpcfg.serve.state import Service

AHEAD = 4
"""Lines in progress per thread: enough that no thread waits for the network."""
_INPUT: TypeAdapter[inputs.AnyInput] = TypeAdapter(SentenceInput)
_SOON = 1.0  # seconds between looks at a quota, at most


@dataclass(frozen=True, eq=False)
class Lines:
    """Answers lines by one version of one model."""

    service: Service
    asked: Asked
    context: Context
    endpoint: str
    patient: bool = False
    """True: a used-up quota is waited for. False: it is a problem."""

    async def answer(self, number: int, line: bytes | LpcfgError) -> bytes:
        """Answer a line; one that is an error has it for its answer."""
        try:
            sentence = await self._sentence(line)
        except LpcfgError as error:
            return self.refused([number], problem_of(error))
        except ValidationError as error:
            faults = [_under_line(dict(one)) for one in error.errors()]
            return self.refused([number], problem_of_validation(faults))
        return self._written([number], "sentence", sentence)

    def refused(self, numbers: Iterable[int], fault: Problem) -> bytes:
        """Write the answers to lines that all have the same problem."""
        return self._written(numbers, "problem", json_of(fault))

    def _written(self, numbers: Iterable[int], member: str, value: bytes) -> bytes:
        model = encoded(version_of(self.asked.model))
        return encoded_lines({"line": one, "model": model, member: value} for one in numbers)

    async def _sentence(self, line: bytes | LpcfgError) -> bytes:
        if isinstance(line, LpcfgError):
            raise line
        service, settings, model = self.service, self.service.settings, self.asked.model
        value = await decoded(line, read_json, service)
        check_sentence(value, settings, "")
        given = _INPUT.validate_python(value)
        expected = inputs.tokens_in(None, [given])
        await self._charge(expected)
        stop = service.stop()

        def prepare() -> list[Task[Answer]]:
            sentence = inputs.sentence_of(given, model.segmenter, settings, "")
            return [self.asked.task(service.cache, sentence, stop, "")]

        estimate = inputs.estimate(None, [given], settings)
        [answer] = await service.answers(prepare, Priority.BATCH, self.context, estimate, stop)
        lengths = [answer.tokens]
        service.done(self.context, self.endpoint, model.reference.hash, lengths, expected)
        return answer.body

    async def _charge(self, tokens: int) -> None:
        while True:
            try:
                self.service.charge(self.context, tokens)
            except Refused as error:
                if not self.patient:
                    raise
                await asyncio.sleep(min(error.retry_after or 0.0, _SOON))
            else:
                return


def checked(line: bytes, length: int, longest: int) -> bytes | InputError:
    """Return a line that can be answered, or the reason why it cannot."""
    if length <= longest:
        blank = InputError("expected a sentence as JSON, got a blank line: leave it out")
        return line if line.strip() else blank
    return LimitError(
        f"expected lines of at most {longest} bytes, got one of {length}: send a sentence a line",
        limit=longest,
        value=length,
    )


def _under_line(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error with its pointer made relative to the line instead of the body."""
    return {**error, "loc": ("body", *error["loc"])}
