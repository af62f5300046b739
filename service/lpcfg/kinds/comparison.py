"""Compare two models of one kind on the same gold data, sentence by sentence."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lpcfg.grammar.tables import Doubles
from lpcfg.kinds.kind import Evaluation

RESAMPLES, SEED = 1000, 1
COVERED = 95
"""The interval of the gain leaves out (100 - COVERED) / 2 percent of the resamples on each side."""


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more the second model has of the main measure than the first one.

    `low` and `high` bound the gain on 95 % of resamples of the sentences (bootstrap). `better` and
    `worse` count the sentences on which the second model has more or less of it.
    """

    total: float
    low: float
    high: float
    better: int
    worse: int
    same: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of two models on the same gold data."""

    names: tuple[str, str]
    found: tuple[Evaluation, Evaluation]
    gain: Gain

    def as_dict(self) -> dict[str, Any]:
        """Return what `lpcfg compare --json` prints."""
        models = [
            {"model": name, **one.as_json()}
            for name, one in zip(self.names, self.found, strict=True)
        ]
        gain = self.gain
        return {
            "models": models,
            "gain": gain.total,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "better": gain.better,
            "worse": gain.worse,
            "same": gain.same,
        }

    def text(self) -> str:
        """Write both results side by side, then the gain."""
        width = max(10, *map(len, self.names))
        rows = self.found[0].shown
        both = [one.as_json() for one in self.found]
        heads = "".join(f"{name:>{width + 2}}" for name in self.names)
        lines = [f"{'':20}{heads}"]
        for title, key, digits in rows:
            cells = "".join(f"{one[key]:>{width + 2}.{digits}f}" for one in both)
            lines.append(f"{title:20}{cells}")
        gain, title = self.gain, f"gain in {self.found[0].measure}"
        return "\n".join(
            [
                *lines,
                "",
                f"{title:20} {gain.total:+.2f}, on {COVERED} % of resamples from "
                f"{gain.low:+.2f} to {gain.high:+.2f}",
                f"sentences            {gain.better:,} better, {gain.worse:,} worse, "
                f"{gain.same:,} alike",
            ]
        )


def compare(names: tuple[str, str], first: Evaluation, second: Evaluation) -> Comparison:
    """Compare the results of two models on the same data."""
    sides = np.array(first.counts()), np.array(second.counts())
    alone, other = (_percent(side) for side in sides)
    rng = np.random.default_rng(SEED)
    gains = np.empty(RESAMPLES)
    for at in range(RESAMPLES):
        chosen = rng.integers(len(alone), size=len(alone))
        before, after = (float(_percent(side[chosen].sum(axis=0))) for side in sides)
        gains[at] = after - before
    outside = (100 - COVERED) / 2
    low, high = np.percentile(gains, [outside, 100 - outside])
    before, after = (float(_percent(side.sum(axis=0))) for side in sides)
    better, worse = int((other > alone).sum()), int((other < alone).sum())
    same = len(alone) - better - worse
    gain = Gain(after - before, float(low), float(high), better, worse, same)
    return Comparison(names, (first, second), gain)


def _percent(counts: Doubles) -> Doubles:
    """Compute the main measure of counts; 0 where there is nothing to be right."""
    right, said = counts[..., 0], counts[..., 1]
    found: Doubles = 200 * right / np.maximum(said, 1)
    return found
