"""Compare two parsers on the same gold trees, sentence by sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpcfg.grammar.tables import Doubles
from lpcfg.kinds.constituency.brackets import SentenceEvaluation
from lpcfg.kinds.constituency.evaluate import ParserEvaluation

RESAMPLES, SEED = 1000, 1
COVERED = 95
"""The interval of the gain leaves out (100 - COVERED) / 2 percent of the resamples on each side."""


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more strict F1 the second parser has than the first one.

    `low` and `high` bound the gain on 95 % of resamples of the sentences (bootstrap). `better` and
    `worse` count the sentences on which the second parser has a higher or a lower F1.
    """

    f1: float
    low: float
    high: float
    better: int
    worse: int
    same: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of two parsers on the same gold trees."""

    names: tuple[str, str]
    found: tuple[ParserEvaluation, ParserEvaluation]
    gain: Gain

    def as_dict(self) -> dict[str, Any]:
        """Return what `lpcfg compare --json` prints."""
        models = [
            {"model": name, **one.as_dict()}
            for name, one in zip(self.names, self.found, strict=True)
        ]
        gain = self.gain
        return {
            "models": models,
            "gain": gain.f1,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "better": gain.better,
            "worse": gain.worse,
            "same": gain.same,
        }

    def text(self) -> str:
        """Write both results side by side, then the gain."""
        width = max(10, *map(len, self.names))
        rows = [
            ("F1 (strict)", "f1", 2),
            ("exact match", "exact_match", 2),
            ("tag accuracy", "tag_accuracy", 2),
            ("calibration error", "calibration_error", 4),
            ("sentences a second", "sentences_per_second", 1),
        ]
        both = [one.as_dict() for one in self.found]
        heads = "".join(f"{name:>{width + 2}}" for name in self.names)
        lines = [f"{'':20}{heads}"]
        for title, key, digits in rows:
            cells = "".join(f"{one[key]:>{width + 2}.{digits}f}" for one in both)
            lines.append(f"{title:20}{cells}")
        gain = self.gain
        return "\n".join(
            [
                *lines,
                "",
                f"gain in F1           {gain.f1:+.2f}, on {COVERED} % of resamples from "
                f"{gain.low:+.2f} to {gain.high:+.2f}",
                f"sentences            {gain.better:,} better, {gain.worse:,} worse, "
                f"{gain.same:,} alike",
            ]
        )


def compare(
    names: tuple[str, str], first: ParserEvaluation, second: ParserEvaluation
) -> Comparison:
    """Compare the results of two parsers on the same trees."""
    sides = _counts(first.brackets.per_sentence), _counts(second.brackets.per_sentence)
    alone, other = (_f1(side) for side in sides)
    rng = np.random.default_rng(SEED)
    gains = np.empty(RESAMPLES)
    for at in range(RESAMPLES):
        chosen = rng.integers(len(alone), size=len(alone))
        before, after = (float(_f1(side[chosen].sum(axis=0))) for side in sides)
        gains[at] = after - before
    outside = (100 - COVERED) / 2
    low, high = np.percentile(gains, [outside, 100 - outside])
    total = second.brackets.brackets.f1 - first.brackets.brackets.f1
    better, worse = int((other > alone).sum()), int((other < alone).sum())
    gain = Gain(total, float(low), float(high), better, worse, len(alone) - better - worse)
    return Comparison(names, (first, second), gain)


def _counts(sentences: Sequence[SentenceEvaluation]) -> Doubles:
    """Return (matched, gold and predicted brackets) of every sentence."""
    return np.array(
        [(one.brackets.matched, one.brackets.gold + one.brackets.predicted) for one in sentences],
        np.float64,
    )


def _f1(counts: Doubles) -> Doubles:
    """Compute F1 in percent; 0 where there are no brackets."""
    matched, all_of_them = counts[..., 0], counts[..., 1]
    f1: Doubles = 200 * matched / np.maximum(all_of_them, 1)
    return f1
