"""Tell how unusual a sentence is: its surprisal among training sentences of about its length.

The surprisal of a sentence x of n words is

    (log q(x) − 2 log p(x)) / n

with p(x) under the model and q(x) the product of its words' shares of the training words: −log p a
word, which foreign words make high, plus log q − log p a word, which word salad makes high and rare
words do not. Over `en@1`, sentences of gum/dev, mctb/dev and craft/dev are below 98 % of shuffled
ones and of foreign ones; −log p alone, below 95 % and 99.7 %; log q − log p alone, below 99 % and
70 %.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpcfg.base.errors import GrammarError

GROUP = 50
"""Sentences that a group of lengths has at least: its percentiles are off by 7 points at most, one
standard deviation, in the middle, and by 2 in the last 2 %."""
STEPS = 40
"""Pieces between the percentiles that are kept."""


@dataclass(frozen=True, slots=True)
class SurprisalQuantiles:
    """Quantiles of surprisal by length of sentence.

    Group g is of sentences of at most longest[g] words, and more than those of the group before;
    the last is of all longer ones as well. Its quantiles are quantiles[g], from 0 to 100 % in equal
    steps.
    """

    longest: tuple[int, ...]
    quantiles: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        lengths = np.asarray(self.longest)
        rising = all((np.diff(row) >= 0).all() for row in self.quantiles)
        widths = {len(row) for row in self.quantiles}
        if not (
            len(lengths) == len(self.quantiles) > 0
            and (np.diff(lengths) > 0).all()
            and len(widths) == 1
            and min(widths) >= 2
            and rising
        ):
            raise GrammarError(
                "expected quantiles of surprisal that never decrease, for lengths that increase, "
                f"got {len(self.quantiles)} rows for lengths {list(self.longest)}: train again"
            )

    def percentile(self, words: int, surprisal: float) -> float:
        """Compute the percentage of training sentences of about this length with less surprisal."""
        row = self.quantiles[min(bisect_left(self.longest, words), len(self.longest) - 1)]
        # Equal quantiles would leave it open which percentile is meant: the highest one is.
        at = bisect_right(row, surprisal)
        if at in (0, len(row)):
            return 100.0 * (at > 0)
        below, above = row[at - 1], row[at]
        return 100 * (at - 1 + (surprisal - below) / (above - below)) / (len(row) - 1)

    @classmethod
    def fitted(cls, words: Sequence[int], surprisals: npt.ArrayLike) -> "SurprisalQuantiles | None":
        """Compute the quantiles of sentences of these lengths; None if there are too few."""
        length, surprisal = np.asarray(words), np.asarray(surprisals, np.float64)
        if len(length) < GROUP:
            return None
        sizes = np.bincount(length)
        bounds: list[int] = []
        pending = 0
        for n, count in enumerate(sizes.tolist()):
            pending += count
            if pending >= GROUP:
                bounds.append(n)
                pending = 0
        bounds[-1] = len(sizes) - 1  # what is left over joins the last group
        shares = np.linspace(0, 1, STEPS + 1)
        group = np.searchsorted(bounds, length)
        rows = (np.quantile(surprisal[group == g], shares) for g in range(len(bounds)))
        return cls(tuple(bounds), tuple(tuple(row.tolist()) for row in rows))

    def as_json(self) -> dict[str, object]:
        """Return the quantiles for JSON. `from_json` reads them."""
        return {"longest": list(self.longest), "quantiles": [list(row) for row in self.quantiles]}

    @classmethod
    def from_json(cls, content: dict[str, list[list[float]]]) -> "SurprisalQuantiles":
        """Build the quantiles from what `as_json` returned."""
        longest = tuple(int(n) for n in np.asarray(content["longest"]).tolist())
        return cls(longest, tuple(tuple(row) for row in content["quantiles"]))
