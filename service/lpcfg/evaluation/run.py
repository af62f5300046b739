"""A parser held against gold trees: bracket scores, calibration, signs and speed."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from lpcfg.evaluation.brackets import Scores, render, score
from lpcfg.evaluation.calibration import Calibration, calibration
from lpcfg.grammar.tables import Bools, Doubles
from lpcfg.parsing.parser import Parser
from lpcfg.parsing.readout import constituents_of
from lpcfg.parsing.results import Analysis, Options, Sentence
from lpcfg.parsing.sentences import sentence_from_tree
from lpcfg.trees.tree import Tree

Progress = Callable[[str, int, int], None]
Tags = Literal["predicted", "gold"]
T = TypeVar("T")

SERVED = 0.05
"""Spans with at least this probability count for the calibration error."""
LEAST = 0.01
"""Spans with at least this probability are looked at: a map may lift them above SERVED."""
_BATCH = 32  # sentences between two calls of progress


@dataclass(frozen=True, eq=False)
class Examined:
    """What a parser finds over the words of gold trees: a tree each, or None, and labelled spans.

    The spans are those of all charts, not only of the trees: their probabilities before and after
    the model's calibration map, and whether the gold tree has them.
    """

    trees: tuple[Tree | None, ...]
    raw: Doubles
    served: Doubles
    correct: Bools

    @classmethod
    def joined(cls, parts: Sequence["Examined"]) -> "Examined":
        """What was found over all parts, in their order."""
        return cls(
            trees=tuple(tree for part in parts for tree in part.trees),
            raw=np.concatenate([part.raw for part in parts]),
            served=np.concatenate([part.served for part in parts]),
            correct=np.concatenate([part.correct for part in parts]),
        )

    @property
    def raw_calibration(self) -> Calibration:
        return calibration(self.raw, self.correct, threshold=SERVED)

    @property
    def calibration(self) -> Calibration:
        return calibration(self.served, self.correct, threshold=SERVED)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a parser did on gold trees.

    `seconds` is the time of parsing alone, by one thread, warm. `negative` counts sentences whose
    p(x) is negative in one of the model's members; `clipped_mass` is the mean over sentences.
    """

    scores: Scores
    examined: Examined
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
            **calibration_facts(self.examined),
            "negative_share": self.negative / sentences,
            "clipped_mass": self.clipped_mass,
        }

    def text(self) -> str:
        """The same for people."""
        sentences = self.scores.sentences
        calibration, raw = self.examined.calibration, self.examined.raw_calibration
        return (
            f"{render(self.scores)}\n"
            f"sentences a second   {sentences / self.seconds:8.1f}\n"
            f"partial analyses     {self.partial:8,}\n"
            f"calibration error    {calibration.error:8.4f}   over {calibration.items:,} "
            f"labelled spans with a probability of at least {SERVED}\n"
            f"  without the map    {raw.error:8.4f}\n"
            f"negative p(sentence) {100 * self.negative / sentences:8.2f} %\n"
            f"clipped mass         {self.clipped_mass:8.4f}   a sentence"
        )


def measure(
    parser: Parser,
    gold: Sequence[Tree],
    *,
    tags: Tags = "predicted",
    objective: str = "max-rule",
    workers: int = 1,
    progress: Progress | None = None,
) -> Measured:
    """Parse the words of normalized trees, with their tags if `tags` is gold, and compare.

    Spans are looked at afterwards, by so many workers, so that parsing is timed alone.
    """
    show = progress or (lambda *_: None)
    sentences = [sentence_from_tree(tree, tagged=tags == "gold") for tree in gold]
    options = Options(objective=objective)
    parser.parse(sentences[:1], options)  # whatever has to be loaded or compiled
    analyses, seconds = _parsed(parser, sentences, options, show)
    return Measured(
        scores=score(zip(gold, map(_tree, analyses), strict=True)),
        examined=examine(parser, gold, tags=tags, workers=workers, progress=show),
        seconds=seconds,
        partial=sum(analysis.status == "partial" for analysis in analyses),
        negative=sum(analysis.negative for analysis in analyses),
        clipped_mass=sum(analysis.clipped_mass for analysis in analyses) / len(analyses),
    )


def _parsed(
    parser: Parser, sentences: Sequence[Sentence], options: Options, progress: Progress
) -> tuple[list[Analysis], float]:
    analyses: list[Analysis] = []
    start = time.perf_counter()
    for batch in _batches(sentences):
        analyses += parser.parse(batch, options)
        progress("parse", len(analyses), len(sentences))
    return analyses, time.perf_counter() - start


def examine(
    parser: Parser,
    gold: Sequence[Tree],
    *,
    tags: Tags = "predicted",
    workers: int = 1,
    progress: Progress | None = None,
) -> Examined:
    """Parse the words of normalized trees and look at every span that is LEAST likely or more."""
    parts: list[Examined] = []
    done = 0
    with ThreadPoolExecutor(workers) as pool:
        for part in pool.map(partial(_examined, parser, tags), _batches(gold)):
            parts.append(part)
            done += len(part.trees)
            if progress is not None:
                progress("examine", done, len(gold))
    return Examined.joined(parts)


def calibration_facts(examined: Examined) -> dict[str, object]:
    """Calibration errors and their bins, as JSON has them."""
    served, raw = examined.calibration, examined.raw_calibration
    return {
        "calibration_error": served.error,
        "raw_calibration_error": raw.error,
        "calibration": served.as_dict(),
        "raw_calibration": raw.as_dict(),
    }


def _examined(parser: Parser, tags: Tags, gold: Sequence[Tree]) -> Examined:
    trees: list[Tree | None] = []
    raw, served, correct = [np.empty(0)], [np.empty(0)], [np.empty(0, np.bool_)]
    for tree in gold:
        sentence = sentence_from_tree(tree, tagged=tags == "gold")
        analysis, table = parser.examine(sentence)
        trees.append(_tree(analysis))
        if table is None:
            continue
        right = {(one.label, one.start, one.end) for one in constituents_of(tree, sentence)}
        rows = np.flatnonzero(np.maximum(table.uncalibrated, table.probability) >= LEAST)
        raw.append(table.uncalibrated[rows])
        served.append(table.probability[rows])
        correct.append(np.array([key in right for key in table.keys(rows)], np.bool_))
    return Examined(
        tuple(trees), np.concatenate(raw), np.concatenate(served), np.concatenate(correct)
    )


def _tree(analysis: Analysis) -> Tree | None:
    return analysis.parses[0].tree if analysis.parses else None


def _batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[k : k + _BATCH] for k in range(0, len(items), _BATCH)]
