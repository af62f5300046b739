"""Evaluate a parser on gold trees: brackets, calibration, signs and speed, all from one parse.

Every sentence is parsed once. Its tree, the spans of its chart and the time it took come from that
parse. The clock is that of the thread which parses, and it runs around parsing alone: reading
labelled spans off the chart, comparing trees and waiting for other threads do not count.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from lpcfg.grammar.tables import Bools, Doubles
from lpcfg.kinds.calibration import Calibration, calibration
from lpcfg.kinds.constituency.brackets import Evaluation, evaluate, render
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.readout import SpanTable, constituents_of
from lpcfg.kinds.sentences import Sentence, sentence_from_tree
from lpcfg.trees.tree import Tree

Progress = Callable[[str, int, int], None]
Tags = Literal["predicted", "gold"]
T = TypeVar("T")
Kinds = NDArray[np.str_]

SERVED = 0.05
"""Spans with at least this probability count in the calibration error."""
LEAST = 0.01
"""Spans with at least this probability are examined, because a map may lift them above SERVED."""
_BATCH = 32  # sentences between two calls of progress


@dataclass(frozen=True, eq=False)
class Examined:
    """The results for the words of gold trees: a tree or None for each, and labelled spans.

    The spans are those of all charts, not only of the trees: their probabilities before and after
    the model's calibration map, whether the gold tree has them, and the kind of text that the
    rescoring layer took their sentence for ("" for none). `seconds` is CPU time of
    parsing alone. `partial` counts sentences whose tree is pieces side by side, `negative` those
    whose p(x) is negative in one of the model's members; `clipped_mass` is a sum over sentences.
    """

    trees: tuple[Tree | None, ...]
    raw: Doubles
    served: Doubles
    correct: Bools
    kind: Kinds
    seconds: float
    partial: int
    negative: int
    clipped_mass: float
    surprisals: tuple[tuple[int, float], ...] = ()
    """Words and surprisal of each sentence that has a probability: see `surprisal`."""

    @classmethod
    def joined(cls, parts: Sequence["Examined"]) -> "Examined":
        """Put together what was found over all parts, in their order."""
        return cls(
            trees=tuple(tree for part in parts for tree in part.trees),
            raw=np.concatenate([part.raw for part in parts]),
            served=np.concatenate([part.served for part in parts]),
            correct=np.concatenate([part.correct for part in parts]),
            kind=np.concatenate([part.kind for part in parts]),
            seconds=sum(part.seconds for part in parts),
            partial=sum(part.partial for part in parts),
            negative=sum(part.negative for part in parts),
            clipped_mass=sum(part.clipped_mass for part in parts),
            surprisals=tuple(one for part in parts for one in part.surprisals),
        )

    @property
    def raw_calibration(self) -> Calibration:
        return calibration(self.raw, self.correct, threshold=SERVED)

    @property
    def calibration(self) -> Calibration:
        return calibration(self.served, self.correct, threshold=SERVED)

    def against(self, gold: Sequence[Tree]) -> Evaluation:
        """Compare the trees with gold ones."""
        return evaluate(zip(gold, self.trees, strict=True))


@dataclass(frozen=True)
class ParserEvaluation:
    """The results of a parser on gold trees."""

    brackets: Evaluation
    examined: Examined

    measure = "F1"
    shown = (
        ("F1 (strict)", "f1", 2),
        ("exact match", "exact_match", 2),
        ("tag accuracy", "tag_accuracy", 2),
        ("calibration error", "calibration_error", 4),
        ("sentences a second", "sentences_per_second", 1),
    )

    def counts(self) -> list[tuple[float, float]]:
        """Return matched brackets, and gold and predicted ones, of every sentence."""
        every = (one.brackets for one in self.brackets.per_sentence)
        return [(one.matched, one.gold + one.predicted) for one in every]

    def as_json(self) -> dict[str, Any]:
        """Return what `lpcfg evaluate --json` prints."""
        found, sentences = self.examined, self.brackets.sentences
        return {
            **self.brackets.as_dict(),
            "partial": found.partial,
            "sentences_per_second": sentences / found.seconds,
            **calibration_facts(found),
            "negative_share": found.negative / sentences,
            "clipped_mass": found.clipped_mass / sentences,
        }

    def text(self) -> str:
        """Write the scores as text."""
        found, sentences = self.examined, self.brackets.sentences
        calibration, raw = found.calibration, found.raw_calibration
        return (
            f"{render(self.brackets)}\n"
            f"sentences a second   {sentences / found.seconds:8.1f}   of one core\n"
            f"partial analyses     {found.partial:8,}\n"
            f"calibration error    {calibration.error:8.4f}   over {calibration.items:,} "
            f"labelled spans with a probability of at least {SERVED}\n"
            f"  without the map    {raw.error:8.4f}\n"
            f"negative p(sentence) {100 * found.negative / sentences:8.2f} %\n"
            f"clipped mass         {found.clipped_mass / sentences:8.4f}   a sentence"
        )


def evaluate_parser(
    parser: Parser,
    gold: Sequence[Tree],
    *,
    tags: Tags = "predicted",
    options: ParseOptions = ParseOptions(),  # noqa: B008 (frozen)
    workers: int = 1,
    progress: Progress | None = None,
) -> ParserEvaluation:
    """Parse the words of normalized trees, with their tags if `tags` is gold, and compare."""
    next(parser.predict([sentence_from_tree(gold[0])], options))  # compiles, outside of the clock
    found = examine(parser, gold, tags=tags, options=options, workers=workers, progress=progress)
    return ParserEvaluation(found.against(gold), found)


def examine(
    parser: Parser,
    gold: Sequence[Tree],
    *,
    tags: Tags = "predicted",
    options: ParseOptions = ParseOptions(),  # noqa: B008 (frozen)
    workers: int = 1,
    progress: Progress | None = None,
) -> Examined:
    """Parse the words of normalized trees, and examine every span at least LEAST probable."""
    parts: list[Examined] = []
    done = 0
    with ThreadPoolExecutor(workers) as pool:
        for part in pool.map(partial(_examined, parser, tags, options), _batches(gold)):
            parts.append(part)
            done += len(part.trees)
            if progress is not None:
                progress("parse", done, len(gold))
    return Examined.joined(parts)


def calibration_facts(examined: Examined) -> dict[str, object]:
    """Return calibration errors and their bins, as in JSON."""
    served, raw = examined.calibration, examined.raw_calibration
    return {
        "calibration_error": served.error,
        "raw_calibration_error": raw.error,
        "calibration": served.as_dict(),
        "raw_calibration": raw.as_dict(),
    }


def _examined(parser: Parser, tags: Tags, options: ParseOptions, gold: Sequence[Tree]) -> Examined:
    return Examined.joined([_examined_tree(parser, tags, options, tree) for tree in gold])


def _examined_tree(parser: Parser, tags: Tags, options: ParseOptions, gold: Tree) -> Examined:
    sentence = sentence_from_tree(gold, tagged=tags == "gold")
    start = time.thread_time()
    analysis, make_table = parser.examine(sentence, options)
    seconds = time.thread_time() - start
    table = None if make_table is None else make_table()
    raw, served, correct = _spans(table, gold, sentence)
    log, words = analysis.log_probability, len(sentence.tokens)
    return Examined(
        trees=(analysis.parses[0].tree if analysis.parses else None,),
        raw=raw,
        served=served,
        correct=correct,
        kind=np.full(len(raw), "" if table is None else table.posteriors.domain),
        seconds=seconds,
        partial=int(analysis.status == "partial"),
        negative=int(analysis.negative),
        clipped_mass=analysis.clipped_mass,
        surprisals=() if log is None else ((words, parser.surprisal(sentence, log)),),
    )


def _spans(
    table: SpanTable | None, gold: Tree, sentence: Sentence
) -> tuple[Doubles, Doubles, Bools]:
    """List the probabilities of labelled spans without and with the map, and if the gold tree has
    each.
    """
    if table is None:
        return np.empty(0), np.empty(0), np.empty(0, np.bool_)
    right = {(one.label, one.start, one.end) for one in constituents_of(gold, sentence)}
    rows = np.flatnonzero(np.maximum(table.uncalibrated, table.probability) >= LEAST)
    correct = np.array([key in right for key in table.keys(rows)], np.bool_)
    return table.uncalibrated[rows], table.probability[rows], correct


def _batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[k : k + _BATCH] for k in range(0, len(items), _BATCH)]
