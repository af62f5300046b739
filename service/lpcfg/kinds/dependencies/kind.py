"""Dependency models behind the protocol of all kinds."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lpcfg.kinds.kind import Json, Kind, NoOptions, Progress

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lpcfg.base.cancel import Stop
    from lpcfg.kinds.dependencies.evaluate import Measured
    from lpcfg.kinds.dependencies.predict import DependencyParser, ParsedArcs
    from lpcfg.kinds.sentences import Sentence
    from lpcfg.store.versions import Stored


class Dependencies(Kind["DependencyParser", NoOptions, "ParsedArcs"]):
    """Heads and relations of words."""

    name = "dependencies"
    title = "dependency model"
    command = "dependencies"
    forms = {"conllu": "conllu"}
    columns = {
        "tokens": "list<struct<text: string, start: int64, end: int64, tag: string, xpos: string, "
        "tag_probability: float64, head: int64, relation: string, head_probability: float64, "
        "probability: float64>>",
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
        """Write CoNLL-U; nothing for a sentence that failed."""
        from lpcfg.kinds.dependencies import conllu

        if found.status == "failed":
            return None
        return conllu.write([found.conllu(comments)]).removesuffix("\n")

    def evaluate(
        self,
        predictor: "DependencyParser",
        files: Sequence[str],
        options: NoOptions,
        *,
        workers: int,
        progress: Progress,
    ) -> "Measured":
        from lpcfg.kinds.dependencies import conllu
        from lpcfg.kinds.dependencies.evaluate import measure

        return measure(predictor, (one.arcs for one in conllu.read(list(files))))
