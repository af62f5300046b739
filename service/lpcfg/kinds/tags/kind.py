"""Tagging models behind the protocol of all kinds."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lpcfg.base.errors import InputError
from lpcfg.base.options import Options, option
from lpcfg.kinds.kind import Json, Kind, NoOptions, Progress, Published

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lpcfg.base.cancel import Stop
    from lpcfg.kinds.sentences import Segmenter, Sentence
    from lpcfg.kinds.tags.chains import Tagged
    from lpcfg.kinds.tags.evaluate import TagScores
    from lpcfg.kinds.tags.predict import SequenceTagger, Tags
    from lpcfg.store.versions import Stored


@dataclass(frozen=True, slots=True)
class TaggerTraining(Options):
    """Options of training."""

    estimator: str = option(
        "pivot+em",
        "how transitions are learned; counts: one state a tag",
        choices=("counts", "spectral", "clustering", "clustering+em", "em", "pivot", "pivot+em"),
    )
    states: int = option(16, "most latent states of a tag", least=1)
    neighbours: bool = option(True, "also learn tags from the words on either side")
    language: str = option("english", "the treebank's language, for unknown words")
    seed: int = option(1, "seed of the random numbers", least=0)


class Tagging(Kind["SequenceTagger", NoOptions, "Tags"]):
    """Tags of words."""

    name = "tags"
    title = "tagging model"
    command = "tag"
    verb = "apply"
    data = "Penn brackets"
    training = TaggerTraining
    forms = {"tagged": "tagged"}
    statuses = ("tagged", "failed")
    columns = {
        "tokens": {
            "text": "string",
            "start": "int64",
            "end": "int64",
            "tag": "string",
            "probability": "float64",
        },
        "log_probability": "float64",
    }

    examples = (
        {"text": "The cat sat on the mat. It slept."},
        {"sentences": [{"id": "s2", "tokens": ["Cats", "sleep"], "tags": ["NNS", None]}]},
    )

    def prepare(self) -> None:
        import lpcfg.kinds.tags.predict  # noqa: F401

    def load(self, stored: "Stored") -> "SequenceTagger":
        from lpcfg.kinds.tags.predict import SequenceTagger

        return SequenceTagger.of(stored)

    def predict(
        self,
        predictor: "SequenceTagger",
        sentences: "Sequence[Sentence]",
        options: NoOptions,
        stop: "Stop",
    ) -> "Iterator[Tags]":
        return predictor.predict(sentences, stop)

    def answer(self, found: "Tags") -> Json:
        from lpcfg.kinds.tags.answer import tagged_json

        return tagged_json(found)

    def schema(self) -> "type[BaseModel]":
        from lpcfg.protocol.schemas import TaggedSentence

        return TaggedSentence

    def segmenter(self, predictor: "SequenceTagger") -> "Segmenter":
        return predictor.segmenter

    def facts(self, predictor: "SequenceTagger") -> Json:
        return {"tags": sorted(predictor.tags)}

    def tags(self, predictor: "SequenceTagger") -> Collection[str]:
        return predictor.tags

    def check(self, predictor: "SequenceTagger", sentence: "Sentence") -> None:
        from lpcfg.kinds.sentences import check_tags

        check_tags(sentence, self.tags(predictor))
        if sentence.constraints:
            raise InputError(
                "expected tokens without constraints, got some: a tagger uses none, leave them out",
                pointer="/constraints",
            )

    def text(
        self, found: "Tags", form: str, options: NoOptions, comments: Sequence[str] = ()
    ) -> str | None:
        """Write word/TAG, with blanks between; an empty line for a sentence that failed."""
        words = zip(found.sentence.tokens, found.tags, strict=bool(found.tags))
        return " ".join(f"{word}/{tag}" for word, tag in words)

    def gold(self, files: Sequence[str], options: Options) -> "list[Tagged]":
        from lpcfg.kinds.tags.chains import read

        gold = read(list(files))
        if not gold:
            raise InputError(
                f"expected trees with words in {', '.join(files)}, got none: check the files"
            )
        return gold

    def evaluate(
        self,
        predictor: "SequenceTagger",
        gold: "list[Tagged]",
        options: NoOptions,
        *,
        workers: int,
        progress: Progress,
    ) -> "TagScores":
        from lpcfg.kinds.tags.evaluate import evaluate

        return evaluate(predictor, gold)

    def train(
        self,
        files: Sequence[str],
        options: TaggerTraining,
        *,
        store: str,
        name: str,
        dev: Sequence[str],
        licence: str,
        workers: int,
        progress: Progress,
    ) -> Published:
        """Learn a hidden Markov model whose tags have latent states."""
        from lpcfg.kinds.tags import train as training

        states = {} if options.estimator == "counts" else {"states": options.states}
        reference, facts, scores = training.train_and_publish(
            files,
            training.Config(
                training.estimator_of(options.estimator, **states),
                options.neighbours,
                language=options.language,
                seed=options.seed,
                workers=workers,
            ),
            store=store,
            name=name,
            dev={file: self.gold([file], options) for file in dev},
            licence=licence,
            progress=progress,
        )
        lines = [f"{reference}: {facts['sentences']} sentences, {facts['words']} words"]
        lines += [f"{file}: {one.accuracy:.2f} % of tags right" for file, one in scores.items()]
        return Published(reference, facts, lines)
