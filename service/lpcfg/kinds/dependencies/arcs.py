"""Dependency trees: a head and a relation for every word.

    n             the number of words; they are numbered 1 … n
    head of m     the number of the word that governs word m, or 0: word m is the root
    arc (h, m)    from head h to modifier m
    projective    every word between h and m descends from h, for every arc (h, m)

The numbering is CoNLL-U's. Spans of text are half-open and count code points from 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lpcfg.base.errors import InputError

ROOT_RELATION = "root"
"""The relation of the root's word in Universal Dependencies."""
UNKNOWN_RELATION = "dep"
"""The relation that Universal Dependencies has for arcs of which nothing better is known."""


@dataclass(frozen=True)
class Arcs:
    """One sentence's dependency tree: exactly one root, no cycle.

    Element m − 1 of every tuple belongs to word m. `tags` and `offsets` may be empty: not known.
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    tags: tuple[str, ...] = ()
    offsets: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        n = len(self.words)
        for name in ("heads", "labels", "tags", "offsets"):
            given = len(getattr(self, name))
            if given != n and (given or name in ("heads", "labels")):
                raise InputError(
                    f"expected {n} {name}, one for every word, got {given}: give each word its own"
                )
        problem = problem_of(self.heads)
        if problem:
            word, what = problem
            raise InputError(f"{what} (word {word}, {self.words[word - 1]!r})")

    @property
    def root(self) -> int:
        """The number of the root's word."""
        return 1 + self.heads.index(0)

    @property
    def is_projective(self) -> bool:
        return _first_crossed(self.heads) == 0


def problem_of(heads: Sequence[int]) -> tuple[int, str] | None:
    """Find out why heads are not a tree: (a word's number, what is wrong), or None if they are
    one.
    """
    n = len(heads)
    if not n:
        return None
    for m, head in enumerate(heads, start=1):
        if not 0 <= head <= n or head == m:
            other = " other than the word itself" if head == m else ""
            return m, f"expected a head from 0 to {n}{other}, got {head}: correct the head"
    roots = [m for m, head in enumerate(heads, start=1) if head == 0]
    if len(roots) > 1:
        return roots[1], (
            f"expected one word with head 0, got {len(roots)}, the first of them word {roots[0]}: "
            "attach all others to it"
        )
    word = _word_in_cycle(heads)
    if word:
        path = [word]
        while heads[path[-1] - 1] != word:
            path.append(heads[path[-1] - 1])
        around = " → ".join(map(str, (*path, word)))
        return word, (
            f"expected heads that lead to the root, got the cycle {around}: give one of these "
            "words a head outside of it"
        )
    return None


def _word_in_cycle(heads: Sequence[int]) -> int:
    """Return the number of some word that its own heads lead back to, 0 if there is none."""
    reached = [0] * (len(heads) + 1)  # the walk that came by
    for start in range(1, len(heads) + 1):
        word = start
        while word and not reached[word]:
            reached[word] = start
            word = heads[word - 1]
        if word and reached[word] == start:
            return word
    return 0


def _first_crossed(heads: Sequence[int]) -> int:
    """Find the modifier of the shortest arc that is not projective, the leftmost if there are
    several; 0 if there is none.
    """
    best, shortest = 0, len(heads) + 1
    for m, head in enumerate(heads, start=1):
        low, high = min(head, m), max(head, m)
        if high - low < shortest and not _covers(heads, head, low, high):
            best, shortest = m, high - low
    return best


def _covers(heads: Sequence[int], head: int, low: int, high: int) -> bool:
    """Check that all words strictly between low and high descend from head.

    The root's arc from 0 always does: every word descends from 0.
    """
    if head == 0:
        return True
    for word in range(low + 1, high):
        up = word
        while up not in (0, head):
            up = heads[up - 1]
        if up != head:
            return False
    return True


def projectivized(arcs: Arcs) -> tuple[Arcs, int]:
    """Lift arcs until the tree is projective. Also return how many words have another head.

    The shortest arc that is not projective gets its head's head, again and again (Nivre and
    Nilsson 2005, without their marks on labels).
    """
    heads = list(arcs.heads)
    while word := _first_crossed(heads):
        heads[word - 1] = heads[heads[word - 1] - 1]
    lifted = sum(new != old for new, old in zip(heads, arcs.heads, strict=True))
    return (replace(arcs, heads=tuple(heads)) if lifted else arcs), lifted


def modifiers(heads: Sequence[int]) -> list[list[int]]:
    """Return the modifiers of 0 … n in the order of the sentence."""
    result: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for m, head in enumerate(heads, start=1):
        result[head].append(m)
    return result
