"""A kind of models for tests, registered by a line: it answers a sentence with its length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError
from lpcfg.base.options import Options, option
from lpcfg.kinds import registry
from lpcfg.kinds.kind import Json, Kind, Published
from lpcfg.kinds.sentences import Given, Segmenter, Sentence
from lpcfg.store.files import Bundle
from lpcfg.store.versions import Stored, load, publish

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


@dataclass(frozen=True)
class Counter:
    """A model of lengths: it adds `more` to every number."""

    more: int = 0

    def __call__(self, given: Given) -> list[Length]:
        return list(self.predict(Segmenter().sentences_of(given), LengthOptions()))

    def predict(self, sentences: Sequence[Sentence], options: LengthOptions) -> Iterator[Length]:
        for one in sentences:
            counted = one.tokens if options.unit == "words" else "".join(one.tokens)
            number = max(len(counted) + self.more, options.least)
            yield Length(one, number) if counted else Length(one, 0, "failed", "it has no words")


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
    training = LengthOptions
    forms = {"plain": "txt"}
    columns = {"number": "int64"}

    def load(self, stored: Stored) -> Counter:
        return Counter(int(stored.tensors["more"][0]))

    def predict(
        self, predictor: Counter, sentences: Sequence[Sentence], options: LengthOptions, stop: Stop
    ) -> Iterator[Length]:
        return predictor.predict(sentences, options)

    def answer(self, found: Length) -> Json:
        told = {name: getattr(found, name) for name in ("status", "reason", "number")}
        return {"id": found.sentence.id, "text": found.sentence.text, **told}

    def schema(self) -> type[BaseModel]:
        return LengthAnswer

    def text(
        self, found: Length, form: str, options: LengthOptions, comments: Sequence[str] = ()
    ) -> str | None:
        return str(found.number)

    def check(self, predictor: Counter, sentence: Sentence) -> None:
        if sentence.tags:
            raise InputError("expected tokens without tags, got some: leave out", pointer="/tags")

    def gold(self, files: Sequence[str], options: object) -> list[list[str]]:
        """Read lines of a number, a tab and a sentence."""
        texts = [Path(file).read_text("utf-8") for file in files]
        return [row.split("\t") for row in "".join(texts).splitlines()]

    def evaluate(
        self, predictor: Counter, gold: list[list[str]], options: object, **_: object
    ) -> LengthScores:
        return LengthScores([predictor([text])[0].number == int(number) for number, text in gold])

    def train(
        self, files: Sequence[str], options: LengthOptions, *, store: str, name: str, **_: object
    ) -> Published:
        """Learn what is to be added to the words of the first sentence."""
        (number, text), *_rest = self.gold(files, options)
        more = max(int(number) - Counter()([text])[0].number, options.least)
        reference = load(publish_length(store, name, more), store).reference
        return Published(reference, {"more": more}, [f"adds {more}"], ["learned from one"])


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the kind known until the end of a test."""
    monkeypatch.setitem(registry.KINDS, NAME, "tests.toy_kind:Lengths")


def publish_length(store: str | Path, name: str = NAME, more: int = 0) -> str:
    """Publish a model of lengths, and return its name and version."""
    kind = {"kind": NAME}
    return str(publish(store, name, Bundle({"more": np.array([more])}, kind, kind, "Lengths.\n")))
