"""Tagging models behind the protocol of all kinds."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lpcfg.base.errors import InputError
from lpcfg.kinds.kind import Json, Kind, NoOptions, Progress

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lpcfg.base.cancel import Stop
    from lpcfg.kinds.sentences import Segmenter, Sentence
    from lpcfg.kinds.tags.evaluate import TagScores
    from lpcfg.kinds.tags.predict import SequenceTagger, Tags
    from lpcfg.store.versions import Stored


class Tagging(Kind["SequenceTagger", NoOptions, "Tags"]):
    """Tags of words."""

    name = "tags"
    title = "tagging model"
    command = "tag"
    forms = {"tagged": "tagged"}
    columns = {
        "tokens": "list<struct<text: string, start: int64, end: int64, tag: string, "
        "probability: float64>>",
        "log_probability": "float64",
    }

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

    def check(self, predictor: "SequenceTagger", sentence: "Sentence") -> None:
        from lpcfg.kinds.sentences import check_tags

        check_tags(sentence, predictor.tags)
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

    def evaluate(
        self,
        predictor: "SequenceTagger",
        files: Sequence[str],
        options: NoOptions,
        *,
        workers: int,
        progress: Progress,
    ) -> "TagScores":
        from lpcfg.kinds.tags.chains import read
        from lpcfg.kinds.tags.evaluate import evaluate

        gold = read(list(files))
        if not gold:
            raise InputError(
                f"expected trees with words in {', '.join(files)}, got none: check the files"
            )
        return evaluate(predictor, gold)
