"""Count how often features occur, alone and together, in sums over shards of a treebank.

Counts are whole numbers, held exactly in double precision (below 2⁵³). So Ω does not depend on the
shards, nor on the order in which they are merged.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Ints, Longs
from lpcfg.training.data.features import Side


@dataclass(frozen=True, eq=False)
class FeatureCounts:
    """Features of one side of a symbol's examples, and how many examples have each.

    They are sorted by template, then by code.
    """

    template: Ints
    code: Longs
    count: Longs

    @classmethod
    def of(cls, side: Side) -> "FeatureCounts":
        return cls(side.template, side.code, side.count)

    def __len__(self) -> int:
        return len(self.count)

    def places(self, template: Ints, code: Longs) -> Longs:
        """Find features among these. They are sorted as these are, and none is missing here."""
        result = np.empty(len(code), np.int64)
        _find_places(self.template, self.code, template, code, result)
        return result


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """The counts of a symbol's examples: of inside features, outside features, and of pairs."""

    examples: int
    inside: FeatureCounts
    outside: FeatureCounts
    pairs: scipy.sparse.csr_array

    @classmethod
    def of(cls, phi: Side, psi: Side) -> "Cooccurrence":
        pairs = indicators(phi, np.float64).T.tocsr() @ indicators(psi, np.float64)
        pairs.sort_indices()
        return cls(len(phi.feature), FeatureCounts.of(phi), FeatureCounts.of(psi), pairs)


@compiled(borrows=True)
def _find_places(
    own_template: Ints, own_code: Longs, template: Ints, code: Longs, result: Longs
) -> None:
    """Write the place of every feature among one's own, going through both lists side by side."""
    place = 0
    for k in range(len(code)):
        while own_template[place] < template[k] or own_code[place] != code[k]:
            place += 1
        result[k] = place


def indicators(side: Side, dtype: type[np.floating]) -> scipy.sparse.csr_array:
    """Build φ or ψ of every example, unscaled: a row of ones and zeros."""
    n, templates = side.feature.shape
    return scipy.sparse.csr_array(
        (
            np.ones(n * templates, dtype),
            side.feature.ravel(),
            templates * np.arange(n + 1),
        ),
        shape=(n, side.n_features),
    )


def merged(left: Cooccurrence, right: Cooccurrence) -> Cooccurrence:
    """Add the counts of the same symbol in two parts of a treebank."""
    inside, outside = _united(left.inside, right.inside), _united(left.outside, right.outside)
    first, second = (
        _moved(
            part.pairs,
            inside.places(part.inside.template, part.inside.code),
            outside.places(part.outside.template, part.outside.code),
            (len(inside), len(outside)),
        )
        for part in (left, right)
    )
    pairs = (first + second).tocsr()
    pairs.sort_indices()
    return Cooccurrence(left.examples + right.examples, inside, outside, pairs)


def _united(left: FeatureCounts, right: FeatureCounts) -> FeatureCounts:
    template = np.concatenate([left.template, right.template])
    code = np.concatenate([left.code, right.code])
    order = np.lexsort((code, template))
    template, code = template[order], code[order]
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (np.diff(template) != 0) | (np.diff(code) != 0)
    count = np.concatenate([left.count, right.count])[order]
    first = np.flatnonzero(is_new)
    summed = np.add.reduceat(count, first) if len(first) else count
    return FeatureCounts(template[first], code[first], summed)


def _moved(
    pairs: scipy.sparse.csr_array, rows: Longs, columns: Longs, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """Give rows and columns other numbers, in the same order."""
    lengths = np.zeros(shape[0] + 1, np.int64)
    lengths[rows + 1] = np.diff(pairs.indptr)
    parts = (pairs.data, columns[pairs.indices], np.cumsum(lengths))
    return scipy.sparse.csr_array(parts, shape=shape)
