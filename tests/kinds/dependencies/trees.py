"""Dependency trees for tests: strategies, enumeration, and sentences written for them."""

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

from lpcfg.kinds.dependencies.arcs import Arcs, problem_of

Heads = tuple[int, ...]


def all_trees(n: int) -> Iterator[Heads]:
    """List every dependency tree over n words with one root."""
    for heads in itertools.product(range(n + 1), repeat=n):
        if problem_of(heads) is None:
            yield heads


def descends(heads: Heads, word: int, ancestor: int) -> bool:
    while word not in (0, ancestor):
        word = heads[word - 1]
    return word == ancestor


def is_projective(heads: Heads) -> bool:
    """Check the definition: all words between a head and its modifier descend from the head."""
    return all(
        descends(heads, between, head)
        for m, head in enumerate(heads, start=1)
        for between in range(min(head, m) + 1, max(head, m))
    )


def projective_trees(n: int) -> list[Heads]:
    return [heads for heads in all_trees(n) if is_projective(heads)]


def arcs_from(heads: Heads, words: tuple[str, ...] = (), tags: tuple[str, ...] = ()) -> Arcs:
    words = words or tuple(f"w{m}" for m in range(1, len(heads) + 1))
    return Arcs(words, heads, tuple("dep" if head else "root" for head in heads), tags)


@st.composite
def heads(draw: st.DrawFn, most: int = 12) -> Heads:
    """Draw any tree: words in a random order each choose a head among those before them."""
    n = draw(st.integers(1, most))
    order = draw(st.permutations(range(1, n + 1)))
    result = [0] * n
    for k, word in enumerate(order[1:], start=1):
        result[word - 1] = order[draw(st.integers(0, k - 1))]
    return tuple(result)
