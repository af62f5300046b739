"""The calibration map: from raw posteriors to the share of such spans that is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lpcfg.base.errors import GrammarError
from lpcfg.grammar.tables import Doubles


@dataclass(frozen=True)
class MonotoneMap:
    """A piecewise linear map of [0, 1] into itself that never decreases and keeps 0.

    It maps `inputs`, which increase from 0 to 1, to `outputs`.
    """

    inputs: tuple[float, ...]
    outputs: tuple[float, ...]

    def __post_init__(self) -> None:
        x, y = np.asarray(self.inputs, np.float64), np.asarray(self.outputs, np.float64)
        if not (
            len(x) == len(y) >= 2
            and (x[0], x[-1], y[0]) == (0, 1, 0)
            and (np.diff(x) > 0).all()
            and (np.diff(y) >= 0).all()
            and y[-1] <= 1
        ):
            raise GrammarError(
                "expected a calibration map from inputs that increase from 0 to 1 to as many "
                "outputs that never decrease from 0 and stay within 1, got "
                f"{list(self.inputs)} to {list(self.outputs)}: fit it again"
            )

    @cached_property
    def _points(self) -> tuple[Doubles, Doubles]:
        return np.array(self.inputs), np.array(self.outputs)

    def apply(self, probabilities: npt.ArrayLike) -> Doubles:
        """Map probabilities: p ≤ q gives apply(p) ≤ apply(q), without any tolerance."""
        p = np.asarray(probabilities, np.float64)
        x, y = self._points
        # np.clip would take three times as long for the few numbers of a sentence
        piece = np.minimum(np.maximum(np.searchsorted(x, p, side="right") - 1, 0), len(x) - 2)
        # Rounding may leave a piece, and rise above the beginning of the next one.
        mapped: Doubles = np.minimum(np.maximum(np.interp(p, x, y), y[piece]), y[piece + 1])
        return mapped

    def as_lists(self) -> list[list[float]]:
        """Return the map as lists for JSON. `from_lists` reads them."""
        return [list(self.inputs), list(self.outputs)]

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[float]]) -> "MonotoneMap":
        """Build the map from the lists of `as_lists`.

        Raise GrammarError if they are not such a map.
        """
        if len(lists) != 2:
            raise GrammarError(
                f"expected a calibration map as two lists, inputs and outputs, got {len(lists)}: "
                "fit it again"
            )
        return cls(tuple(lists[0]), tuple(lists[1]))
