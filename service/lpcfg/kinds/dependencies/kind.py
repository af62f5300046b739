"""Dependency models behind the protocol of all kinds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lpcfg.base.options import Options, option
from lpcfg.kinds.kind import Json, Kind, NoOptions, Progress, Published

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lpcfg.base.cancel import Stop
    from lpcfg.kinds.dependencies.arcs import Arcs
    from lpcfg.kinds.dependencies.evaluate import Measured
    from lpcfg.kinds.dependencies.predict import DependencyParser, ParsedArcs
    from lpcfg.kinds.sentences import Sentence
    from lpcfg.store.versions import Stored


@dataclass(frozen=True, slots=True)
class DependencyTraining(Options):
    """Options of training."""

    words: str | None = option(
        None,
        "file of `lpcfg words train`; by default, vectors are learned from the trees",
    )
    vectors: int = option(30_000, "words that keep their vectors", least=1)
    members: int = option(3, "networks whose scores are averaged", least=1)
    epochs: int = option(6, "passes over the sentences", least=1)
    seed: int = option(0, "seed of the random numbers", least=0)


class Dependencies(Kind["DependencyParser", NoOptions, "ParsedArcs"]):
    """Heads and relations of words."""

    name = "dependencies"
    title = "dependency model"
    command = "dependencies"
    group = "dep"
    data = "CoNLL-U"
    training = DependencyTraining
    forms = {"conllu": "conllu"}
    columns = {
        "tokens": {
            "text": "string",
            "start": "int64",
            "end": "int64",
            "tag": "string",
            "xpos": "string",
            "tag_probability": "float64",
            "head": "int64",
            "relation": "string",
            "head_probability": "float64",
            "probability": "float64",
        },
        "log_probability": "float64",
    }

    def prepare(self) -> None:
        import lpcfg.kinds.dependencies.predict  # noqa: F401

    def load(self, stored: "Stored") -> "DependencyParser":
        from lpcfg.kinds.dependencies.predict import DependencyParser

        return DependencyParser.of(stored)

    def predict(
        self,
        predictor: "DependencyParser",
        sentences: "Sequence[Sentence]",
        options: NoOptions,
        stop: "Stop",
    ) -> "Iterator[ParsedArcs]":
        return predictor.predict(sentences, stop)

    def answer(self, found: "ParsedArcs") -> Json:
        from lpcfg.kinds.dependencies.answer import parsed_json

        return parsed_json(found)

    def schema(self) -> "type[BaseModel]":
        from lpcfg.protocol.schemas import DependencySentence

        return DependencySentence

    def check(self, predictor: "DependencyParser", sentence: "Sentence") -> None:
        from lpcfg.kinds.dependencies.predict import check_plain

        check_plain(sentence)

    def text(
        self, found: "ParsedArcs", form: str, options: NoOptions, comments: Sequence[str] = ()
    ) -> str | None:
        """Write CoNLL-U, with the comments and rows of what was read as CoNLL-U if no others
        are given; nothing for a sentence that failed.
        """
        from lpcfg.kinds.dependencies import conllu

        if found.status == "failed":
            return None
        origin = None if comments else getattr(found.sentence, "origin", None)
        made = origin.with_arcs(found.arcs) if origin else found.conllu(comments)
        return conllu.write([made]).removesuffix("\n")

    def gold(self, files: Sequence[str], options: Options) -> "list[Arcs]":
        from lpcfg.kinds.dependencies.train import read

        return read(files)

    def evaluate(
        self,
        predictor: "DependencyParser",
        gold: "list[Arcs]",
        options: NoOptions,
        *,
        workers: int,
        progress: Progress,
    ) -> "Measured":
        from lpcfg.kinds.dependencies.evaluate import measure

        return measure(predictor, gold)

    def train(
        self,
        files: Sequence[str],
        options: DependencyTraining,
        *,
        store: str,
        name: str,
        dev: Sequence[str],
        licence: str,
        workers: int,
        progress: Progress,
    ) -> Published:
        """Learn a parser. Trees that are not projective are lifted first, and counted."""
        from lpcfg.kinds.dependencies import card, learning
        from lpcfg.kinds.dependencies import train as training
        from lpcfg.store.versions import check_publishable
        from lpcfg.words.files import load

        check_publishable(store, name)  # fails before the work instead of after it
        settings = learning.NetworkSettings(epochs=options.epochs)
        config = training.Config(settings, options.members, options.vectors, options.seed, workers)
        trees, measured = (
            self.gold(files, options),
            {file: self.gold([file], options) for file in dev},
        )
        words = load(Path(options.words)) if options.words else None
        model, report = training.train(trees, config, words, progress)
        reference, facts = card.publish(store, name, model, report, config, measured, licence)
        return Published(reference, facts, *card.told(reference, facts))
