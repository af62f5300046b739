"""Guess the domain of a sentence: which kind of text it is, of those a model was learned from.

Treebanks differ in style: one has captions, another flat noun phrases. The layer learns what they
share once, and what each has of its own with features of the domain (Daumé 2007). The domain is
guessed from the words by a log-linear model. Where it is unsure, or guesses the domain without a
name, the sentence has no domain, and the shared features decide alone.
"""

from dataclasses import dataclass

import numpy as np

from lpcfg.base.errors import GrammarError
from lpcfg.base.jit import compiled
from lpcfg.engine.rescoring.names import codes
from lpcfg.grammar.tables import Doubles, Longs, Singles

SURE = 0.7
"""A guess with less probability is no guess."""
FACTS = 4
"""Codes of a word that the guess depends on: itself, its last and first letters, its shape."""
_P, _Q = 0x2545F4914F6CDD1D, 0x369DEA0F31A53F85


@dataclass(frozen=True, eq=False)
class Domains:
    """The domains: their names, and weights of hashed features, (2^b, domains)."""

    names: tuple[str, ...]
    weight: Singles

    def __post_init__(self) -> None:
        rows = len(self.weight)
        if self.weight.shape != (rows, len(self.names)) or rows & (rows - 1) or not rows:
            raise GrammarError(
                f"expected weights of {len(self.names)} domains in as many rows as a power "
                f"of two, got shape {self.weight.shape}: publish the model again"
            )

    def guess(self, facts: Longs) -> str:
        """Return the name of a sentence's domain; "" where it is unsure."""
        score = scores(facts, self.weight)
        share = np.exp(score - score.max())
        best = int(share.argmax())
        return self.names[best] if share[best] >= SURE * share.sum() else ""


def code_of(name: str) -> int:
    """Return the code of a domain; 0 of the one without a name."""
    if not name:
        return 0
    return int(codes([f"kind of text {name}"])[0])  # stored weights were hashed with these words


@compiled()
def slots(facts: Longs, mask: int) -> Longs:
    """Return the rows of a sentence's features: FACTS of every word, its pair with the next, and
    the number of words. The last word has no next one, and counts twice.
    """
    n = facts.shape[1]
    result = np.empty(n * (FACTS + 1) + 1, np.int64)
    filled = 0
    for i in range(n):
        for f in range(FACTS):
            result[filled] = (facts[f, i] * _P >> 32) & mask
            filled += 1
        after = facts[0, i + 1] if i + 1 < n else 0
        result[filled] = (facts[0, i] * _P + after * _Q >> 32) & mask
        filled += 1
    result[filled] = (np.int64(min(n, 50)) * _Q >> 32) & mask
    return result


@compiled()
def scores(facts: Longs, weight: Singles) -> Doubles:
    """Compute the score of every domain."""
    total = np.zeros(weight.shape[1])
    for row in slots(facts, len(weight) - 1):
        for d in range(len(total)):
            total[d] += weight[row, d]
    return total
