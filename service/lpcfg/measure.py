"""A parser held against gold trees: bracket scores, calibration, signs and speed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lpcfg.analysis import Analysis, Options, Sentence
from lpcfg.answers import constituents_of
from lpcfg.calibration import Calibration, calibration
from lpcfg.evaluate import Scores, render, score
from lpcfg.parser import Parser
from lpcfg.trees import Tree

Progress = Callable[[str, int, int], None]
Tags = Literal["predicted", "gold"]

SERVED = 0.05
"""Spans with at least this probability count for the calibration error."""
_BATCH = 64  # sentences between two calls of progress


@dataclass(frozen=True, slots=True)
class Measured:
    """What a parser did on gold trees.

    `seconds` is the time of parsing alone, by one thread, warm. `negative` counts sentences whose
    p(x) is negative in one of the model's members; `clipped_mass` is the mean over sentences.
    """

    scores: Scores
    calibration: Calibration
    seconds: float
    partial: int
    negative: int
    clipped_mass: float

    def as_dict(self) -> dict[str, Any]:
        """What `lpcfg evaluate --json` prints."""
        sentences = self.scores.sentences
        return {
            **self.scores.as_dict(),
            "partial": self.partial,
            "sentences_per_second": sentences / self.seconds,
            "calibration_error": self.calibration.error,
            "negative_share": self.negative / sentences,
            "clipped_mass": self.clipped_mass,
            "calibration": self.calibration.as_dict(),
        }

    def text(self) -> str:
        """The same for people."""
        sentences = self.scores.sentences
        return (
            f"{render(self.scores)}\n"
            f"sentences a second   {sentences / self.seconds:8.1f}\n"
            f"partial analyses     {self.partial:8,}\n"
            f"calibration error    {self.calibration.error:8.4f}   over {self.calibration.items:,} "
            f"labelled spans with a probability of at least {SERVED}\n"
            f"negative p(sentence) {100 * self.negative / sentences:8.2f} %\n"
            f"clipped mass         {self.clipped_mass:8.4f}   a sentence"
        )


def measure(
    parser: Parser,
    gold: Sequence[Tree],
    *,
    tags: Tags = "predicted",
    objective: str = "max-rule",
    progress: Progress | None = None,
) -> Measured:
    """Parse the words of normalized trees, with their tags if `tags` is gold, and compare."""
    show = progress or (lambda *_: None)
    sentences = [_sentence(tree, tags) for tree in gold]
    options = Options(objective=objective)
    parser.parse(sentences[:1], options)  # whatever has to be loaded or compiled
    analyses, seconds = _parsed(parser, sentences, options, show)
    trees = [analysis.parses[0].tree if analysis.parses else None for analysis in analyses]
    return Measured(
        scores=score(zip(gold, trees, strict=True)),
        calibration=_calibration(parser, gold, sentences, show),
        seconds=seconds,
        partial=sum(analysis.status == "partial" for analysis in analyses),
        negative=sum(analysis.negative for analysis in analyses),
        clipped_mass=sum(analysis.clipped_mass for analysis in analyses) / len(analyses),
    )


def _sentence(tree: Tree, tags: Tags) -> Sentence:
    leaves = tree.leaves()
    words = tuple(leaf.word or "" for leaf in leaves)
    given = tuple(leaf.label for leaf in leaves) if tags == "gold" else None
    return Sentence(tokens=words, forms=words, tags=given)


def _parsed(
    parser: Parser, sentences: Sequence[Sentence], options: Options, progress: Progress
) -> tuple[list[Analysis], float]:
    analyses: list[Analysis] = []
    start = time.perf_counter()
    for batch in _batches(sentences):
        analyses += parser.parse(batch, options)
        progress("parse", len(analyses), len(sentences))
    return analyses, time.perf_counter() - start


def _calibration(
    parser: Parser, gold: Sequence[Tree], sentences: Sequence[Sentence], progress: Progress
) -> Calibration:
    """Of all labelled spans that the parser would serve, not only of those in its trees."""
    probabilities: list[float] = []
    correct: list[bool] = []
    for number, (tree, sentence) in enumerate(zip(gold, sentences, strict=True), start=1):
        right = {(one.label, one.start, one.end) for one in constituents_of(tree, sentence)}
        for span in parser.marginals(sentence, threshold=SERVED).spans:
            probabilities.append(span.probability)
            correct.append((span.label, span.start, span.end) in right)
        if number % _BATCH == 0 or number == len(gold):
            progress("calibration", number, len(gold))
    return calibration(probabilities, correct, threshold=SERVED)


def _batches(sentences: Sequence[Sentence]) -> list[Sequence[Sentence]]:
    return [sentences[k : k + _BATCH] for k in range(0, len(sentences), _BATCH)]
