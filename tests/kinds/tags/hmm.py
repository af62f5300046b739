"""Random refinement HMMs, their probabilities by enumeration, and the same as tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator

from lpcfg.grammar.tables import Doubles, Grammar, Tables
from lpcfg.kinds.tags.chains import REST

WORDS = ("x", "y", "z", "w")


@dataclass(frozen=True, eq=False)
class Hmm:
    """p(a, h) at the start; p(b, k | a, h); p(end | a, h) after a word; q(x | a, h).

    Tag a has states[a] states; arrays are lists by tag, of rows per state.
    """

    tags: tuple[str, ...]
    states: tuple[int, ...]
    start: list[Doubles]
    follow: list[list[Doubles]]
    end: list[Doubles]
    emit: list[Doubles]

    def probability(self, words: Sequence[str], tags: Sequence[str]) -> float:
        """Compute p(words, tags) as a sum over all sequences of states."""
        a = [self.tags.index(tag) for tag in tags]
        x = [WORDS.index(word) for word in words]
        total = 0.0
        for h in product(*(range(self.states[tag]) for tag in a)):
            p = self.start[a[0]][h[0]]
            for i in range(len(a)):
                p *= self.emit[a[i]][h[i], x[i]]
                last = self.end[a[i]][h[i]]
                if i + 1 < len(a):
                    p *= (1 - last) * self.follow[a[i]][a[i + 1]][h[i], h[i + 1]]
                else:
                    p *= last
            total += p
        return float(total)

    def taggings(self, words: Sequence[str]) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield every sequence of tags with p(words, tags)."""
        for tags in product(self.tags, repeat=len(words)):
            yield tags, self.probability(words, tags)

    def draw(self, rng: Generator) -> tuple[list[str], list[str]]:
        """Draw a tagged sentence."""
        words, tags = [], []
        flat = np.concatenate(self.start)
        owner = np.repeat(np.arange(len(self.tags)), self.states)
        within = np.concatenate([np.arange(m) for m in self.states])
        at = rng.choice(len(flat), p=flat / flat.sum())
        while True:
            a, h = owner[at], within[at]
            tags.append(self.tags[a])
            words.append(WORDS[rng.choice(len(WORDS), p=self.emit[a][h])])
            if rng.random() < self.end[a][h]:
                return words, tags
            row = np.concatenate([self.follow[a][b][h] for b in range(len(self.tags))])
            at = rng.choice(len(row), p=row / row.sum())


def random_hmm(rng: Generator, states: Sequence[int], *, concentration: float = 1.0) -> Hmm:
    """Draw an HMM whose tags have so many states."""
    n = sum(states)
    rows = [rng.gamma(concentration, size=(m, n)) for m in states]
    rows = [row / row.sum(axis=1, keepdims=True) for row in rows]
    start = rng.gamma(concentration, size=n)
    emit = [rng.gamma(concentration, size=(m, len(WORDS))) for m in states]
    cuts = np.cumsum(states)[:-1]
    return Hmm(
        tags=tuple("ABCDE"[: len(states)]),
        states=tuple(states),
        start=np.split(start / start.sum(), cuts),
        follow=[np.split(row, cuts, axis=1) for row in rows],
        end=[rng.uniform(0.2, 0.6, m) for m in states],
        emit=[one / one.sum(axis=1, keepdims=True) for one in emit],
    )


def chain_grammar(tags: Sequence[str]) -> Grammar:
    """Build the grammar of all right-branching trees over these tags and WORDS."""
    internal = [tag + REST for tag in tags]
    leaves = sorted([*tags, *(f"{tag}{REST}|{tag}" for tag in tags)])
    symbols = (*internal, *leaves)
    ids = {name: a for a, name in enumerate(symbols)}
    following = [*internal, *(f"{tag}{REST}|{tag}" for tag in tags)]
    rules = sorted((ids[tag + REST], ids[tag], ids[nxt]) for tag in tags for nxt in following)
    entries = [(ids[leaf], x) for x in range(len(WORDS)) for leaf in leaves]
    return Grammar(symbols, len(internal), np.array(rules), WORDS, np.array(entries))


def tables_of(hmm: Hmm) -> Tables:
    """Write the HMM as an L-PCFG: C[h, h', k] = ⟦h = h'⟧ p(b, k | a, h), with or without an end."""
    grammar = chain_grammar(hmm.tags)
    tag = [hmm.tags.index(name[0]) for name in grammar.symbols]
    last = ["|" in name for name in grammar.symbols]
    tensors = []
    for a, _, c in grammar.rules.tolist():
        one, two = tag[a], tag[c]
        ends = hmm.end[two] if last[c] else 1 - hmm.end[two]
        step = hmm.follow[one][two] * ends
        tensors.append(np.einsum("hi,hk->hik", np.eye(hmm.states[one]), step))
    rows = [hmm.emit[tag[a]][:, x] for a, x in grammar.entries.tolist()]
    roots = []
    for a, name in enumerate(grammar.symbols):
        ends = hmm.end[tag[a]] if last[a] else 1 - hmm.end[tag[a]]
        is_chain = REST in name
        roots.append(hmm.start[tag[a]] * ends if is_chain else np.zeros(hmm.states[tag[a]]))
    return Tables.from_dense(grammar, [hmm.states[t] for t in tag], tensors, rows, roots)
