"""A kind of models for tests, in one module: it answers a sentence with its number of words.

Registered by one line, it has commands, an endpoint, batches, jobs and collections like any other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError, StoreError
from lpcfg.base.options import Options, option
from lpcfg.kinds import registry
from lpcfg.kinds.kind import Json, Kind
from lpcfg.kinds.sentences import Given, Segmenter, Sentence
from lpcfg.store.files import Bundle
from lpcfg.store.versions import Stored, publish

NAME = "length"


@dataclass(frozen=True, slots=True)
class LengthOptions(Options):
    """Options of counting."""

    unit: str = option("words", "what is counted", choices=("words", "letters"))
    least: int = option(0, "the smallest number that is answered", least=0)


@dataclass(frozen=True)
class Length:
    """How long a sentence is."""

    sentence: Sentence
    number: int

    status: str = "counted"
    reason: str | None = None


class Counter:
    """A model of lengths: it adds `more` to every number."""

    def __init__(self, more: int = 0) -> None:
        self.more = more

    def __call__(self, given: Given) -> list[Length]:
        """Count the words of text of any number of sentences, or of sentences one by one."""
        return list(self.predict(Segmenter().sentences_of(given), LengthOptions()))

    def predict(self, sentences: Sequence[Sentence], options: LengthOptions) -> Iterator[Length]:
        """Count sentences, in order."""
        for one in sentences:
            if not one.tokens:
                yield Length(one, 0, "failed", "the sentence has no words")
                continue
            words = one.tokens if options.unit == "words" else "".join(one.tokens)
            yield Length(one, max(len(words) + self.more, options.least))


class LengthAnswer(BaseModel):
    """The length of a sentence."""

    id: int | str | None
    status: str
    reason: str | None
    text: str | None
    number: int


@dataclass(frozen=True)
class LengthScores:
    """How many lengths are right."""

    right: Sequence[bool]
    measure = "accuracy"
    shown = (("Right", "accuracy", 1),)

    def as_json(self) -> Json:
        return {"accuracy": 100 * float(np.mean(self.right)), "sentences": len(self.right)}

    def text(self) -> str:
        return f"Right    {self.as_json()['accuracy']:5.1f} of {len(self.right)}"

    def counts(self) -> Sequence[tuple[float, float]]:
        return [(float(one), 2.0) for one in self.right]


class Lengths(Kind[Counter, LengthOptions, Length]):
    """Numbers of words."""

    name = NAME
    title = "length model"
    command = "length"
    options = LengthOptions
    forms = {"plain": "txt"}
    columns = {"number": "int64"}

    def load(self, stored: Stored) -> Counter:
        if stored.grammar.get("kind") != NAME:
            raise StoreError(f"expected a length model, found {stored.reference}: name another")
        return Counter(int(stored.tensors["more"][0]))

    def predict(
        self, predictor: Counter, sentences: Sequence[Sentence], options: LengthOptions, stop: Stop
    ) -> Iterator[Length]:
        stop.check()
        return predictor.predict(sentences, options)

    def answer(self, found: Length) -> Json:
        one = found.sentence
        told = {"id": one.id, "status": found.status, "reason": found.reason, "text": one.text}
        return {**told, "number": found.number}

    def schema(self) -> type[BaseModel]:
        return LengthAnswer

    def text(
        self, found: Length, form: str, options: LengthOptions, comments: Sequence[str] = ()
    ) -> str | None:
        return str(found.number)

    def check(self, predictor: Counter, sentence: Sentence) -> None:
        if sentence.tags:
            raise InputError("expected tokens without tags, got some: leave out", pointer="/tags")

    def evaluate(
        self, predictor: Counter, files: Sequence[str], options: object, **_: object
    ) -> LengthScores:
        """Compare with lines of a number, a tab and a sentence."""
        lines = [row for file in files for row in Path(file).read_text("utf-8").splitlines()]
        gold = [row.split("\t") for row in lines]
        return LengthScores([predictor([text])[0].number == int(number) for number, text in gold])


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the kind known until the end of a test."""
    monkeypatch.setitem(registry.KINDS, NAME, "tests.toy_kind:Lengths")


def publish_length(store: Path, name: str = NAME, more: int = 0) -> str:
    """Publish a model of lengths, and return its name."""
    kind = {"kind": NAME}
    publish(store, name, Bundle({"more": np.array([more])}, kind, kind, "A model of lengths.\n"))
    return name
