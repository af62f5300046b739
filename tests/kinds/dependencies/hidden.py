"""Dependency trees with hidden states: the model itself, its exact moments, enumeration.

Shares no code with the package: states are summed over one by one, or passed up as beliefs.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpcfg.kinds.dependencies.spectral import Examples

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HiddenTree:
    """π (k,), T_L and T_R (k, k; columns sum to one), O (n, k; columns sum to one)."""

    pi: Array
    t: tuple[Array, Array]
    o: Array

    @classmethod
    def drawn(cls, states: int, words: int, seed: int) -> "HiddenTree":
        """Draw a random model; nothing makes its hidden marginals stationary."""
        random = np.random.default_rng(seed)
        left, right = (random.dirichlet(np.full(states, 0.5), states).T for _ in range(2))
        emissions = random.dirichlet(np.full(words, 0.4), states).T
        return cls(random.dirichlet(np.ones(states)), (left, right), emissions)

    def side(self, m: int, head: int) -> Array:
        return self.t[0] if m < head else self.t[1]

    def by_enumeration(self, words: tuple[int, ...], heads: tuple[int, ...]) -> float:
        total = 0.0
        for h in itertools.product(range(len(self.pi)), repeat=len(words)):
            p = 1.0
            for m, head in enumerate(heads, start=1):
                p *= self.o[words[m - 1], h[m - 1]]
                above = self.pi if head == 0 else self.side(m, head)[:, h[head - 1]]
                p *= above[h[m - 1]]
            total += p
        return total

    def by_beliefs(self, words: tuple[int, ...], heads: tuple[int, ...]) -> float:
        def upward(m: int) -> Array:
            belief: Array = self.o[words[m - 1]].copy()
            for child, head in enumerate(heads, start=1):
                if head == m:
                    belief = belief * (upward(child) @ self.side(child, m))
            return belief

        return float(upward(1 + heads.index(0)) @ self.pi)

    def marginal(self, m: int, heads: tuple[int, ...]) -> Array:
        """Return the distribution of the state of word m."""
        head = heads[m - 1]
        if head == 0:
            return self.pi
        result: Array = self.side(m, head) @ self.marginal(head, heads)
        return result

    def exact(self, topologies: list[tuple[int, ...]]) -> Examples:
        """List every (l, u, w) and every root with its probability, for equally likely
        topologies.
        """
        n = len(self.o)
        total = np.zeros((n, n, n))
        for heads in topologies:
            for u in range(1, len(heads) + 1):
                children = [m for m, head in enumerate(heads, start=1) if head == u]
                pairs = sum(m < u for m in children) * sum(m > u for m in children)
                if pairs:
                    left, right = self.o @ self.t[0], self.o @ self.t[1]
                    p = self.marginal(u, heads)
                    total += pairs * np.einsum("lh,uh,wh,h->luw", left, self.o, right, p)
        triples = np.array(list(itertools.product(range(n), repeat=3)), np.int64)
        return Examples(triples, total.ravel(), np.arange(n), self.o @ self.pi)

    def sample(self, heads: tuple[int, ...], count: int, random: np.random.Generator) -> Array:
        """Draw the words of `count` trees of one topology, a row each."""
        n = len(heads)
        states, words = np.zeros((2, count, n), np.int64)
        todo = [1 + heads.index(0)]
        for m in todo:
            todo += [child for child, head in enumerate(heads, start=1) if head == m]
            head = heads[m - 1]
            shares = (
                np.broadcast_to(self.pi, (count, len(self.pi)))
                if head == 0
                else self.side(m, head).T[states[:, head - 1]]
            )
            states[:, m - 1] = _draw(shares, random)
            words[:, m - 1] = _draw(self.o.T[states[:, m - 1]], random)
        return words


def _draw(shares: Array, random: np.random.Generator) -> NDArray[np.int64]:
    cumulative = np.cumsum(shares, axis=1)
    draws = random.random((len(shares), 1))
    return np.minimum((draws > cumulative).sum(axis=1), shares.shape[1] - 1)
