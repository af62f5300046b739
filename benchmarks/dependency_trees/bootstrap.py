"""Tell a gain in right heads from chance."""

from collections.abc import Sequence

import numpy as np

from lpcfg.grammar.tables import Doubles, Longs
from lpcfg.kinds.dependencies.arcs import Arcs


def right_heads(gold: Sequence[Arcs], predicted: Sequence[Arcs]) -> Longs:
    """Count how many heads are right in every sentence."""
    return np.array(
        [
            sum(a == b for a, b in zip(one.heads, other.heads, strict=True))
            for one, other in zip(gold, predicted, strict=True)
        ],
        np.int64,
    )


def paired_bootstrap(
    first: Longs, second: Longs, words: Longs, *, draws: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the gain in percent of words of the second over the first, and its p-value.

    Sentences are drawn with replacement (Koehn 2004); p is the share of draws in which the second
    is no better.
    """
    random = np.random.default_rng(seed)
    gain: Doubles = (second - first).astype(np.float64)
    worse = 0
    for _ in range(draws):
        chosen = random.integers(0, len(gain), len(gain))
        worse += gain[chosen].sum() <= 0
    return float(100 * gain.sum() / words.sum()), (worse + 1) / (draws + 1)
