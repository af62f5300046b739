"""Learn to guess the domain of a sentence, its kind of text: logistic regression by AdaGrad.

The layer learns with guesses, as it will have them for sentences to come: those of a fold are by a
model of the other folds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.base.errors import TrainingError
from lpcfg.base.jit import compiled
from lpcfg.engine.rescoring.domains import Domains, code_of, slots
from lpcfg.engine.rescoring.quantized import rounded
from lpcfg.grammar.tables import Ints, Longs, Singles

BITS = 15
EPOCHS, RATE, DROPOUT = 3, 0.1, 0.5


@dataclass(frozen=True, eq=False)
class Texts:
    """Sentences with their domains.

    Words have facts (`WordFacts`), those of sentence s are facts[:, start[s] : start[s + 1]];
    domain[s] is the place of its domain in `names`.
    """

    facts: Longs
    start: Longs
    domain: Ints
    names: tuple[str, ...]

    def domains(self, chosen: Longs, seed: int) -> Domains:
        """Learn from the chosen sentences."""
        rng = np.random.default_rng(seed)
        weight = np.zeros((1 << BITS, len(self.names)), np.float32)
        squares = np.ones_like(weight)
        for _ in range(EPOCHS):
            order, draw = rng.permutation(chosen), int(rng.integers(1 << 48))
            _learn(weight, squares, (self.facts, self.start, self.domain), order, draw)
        return Domains(self.names, rounded(weight * np.float32(1 - DROPOUT)))

    def guessed(self, chosen: Longs, fold: Ints, seed: int) -> Longs:
        """Return the code of the domain of each chosen sentence, guessed from all other folds."""
        codes = np.zeros(len(chosen), np.int64)
        for number in range(int(fold.max()) + 1):
            domains = self.domains(chosen[fold != number], seed)
            for k in np.flatnonzero(fold == number).tolist():
                words = slice(self.start[chosen[k]], self.start[chosen[k] + 1])
                codes[k] = code_of(domains.guess(self.facts[:, words]))
        return codes


def domains_of(names: Sequence[str], source: Ints) -> tuple[tuple[str, ...], Ints]:
    """Return the names of the domains, and the number of every tree's domain by its source.

    There are no names if fewer than two treebanks have one. The name "" is a domain to guess as
    well: without it, `What a day!` would be taken for a heading of some other domain.

    Args:
        names: the domain of each treebank.
        source: the treebank of each tree.

    Raises:
        TrainingError: if there are fewer names than treebanks.
    """
    if len({name for name in names if name}) < 2:
        return (), np.zeros(len(source), np.int32)
    if source.max() >= len(names):
        raise TrainingError(
            f"expected a name in `domains` for each of {source.max() + 1} treebanks, got "
            f'{len(names)}: give one each, in the order of the treebanks, or "" for none'
        )
    distinct = tuple(sorted(set(names)))
    return distinct, np.array([distinct.index(name) for name in names], np.int32)[source]


@compiled()
def _learn(
    weight: Singles, squares: Singles, texts: tuple[Longs, Longs, Ints], order: Longs, draw: int
) -> None:
    """Run one epoch in this order. `draw` is where the random numbers start."""
    facts, start, domain = texts
    share = np.empty(weight.shape[1], np.float32)
    for s in order:
        rows = slots(facts[:, start[s] : start[s + 1]], len(weight) - 1)
        kept = 0
        for row in rows:
            draw = (draw * 0x5DEECE66D + 11) & 0xFFFFFFFFFFFF  # 48 bits
            if draw >= DROPOUT * 2.0**48:
                rows[kept] = row
                kept += 1
        share[:] = 0
        for row in rows[:kept]:
            share += weight[row]
        share = np.exp(share - share.max())
        share /= share.sum()
        share[domain[s]] -= np.float32(1)
        for row in rows[:kept]:
            squares[row] += share * share
            weight[row] -= np.float32(RATE) * share / np.sqrt(squares[row])
