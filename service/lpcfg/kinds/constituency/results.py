"""Requests and results of parsing: plain values, shared by commands and service.

Spans are half-open. `start` and `end` of constituents count tokens; those of tokens and sentences
count code points of their text (None without a text). Probabilities are in [0, 1], and calibrated
if the model is; logs are natural.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from operator import itemgetter
from typing import Literal, NamedTuple

from lpcfg.kinds.sentences import Sentence
from lpcfg.trees.tree import Tree

Status = Literal["parsed", "partial", "failed"]


class Token(NamedTuple):
    """A token with its tag in the best tree, and that tag's probability."""

    text: str
    start: int | None
    end: int | None
    tag: str | None
    probability: float | None


class Constituent(NamedTuple):
    """A labelled span of a tree, and the probability that it is right."""

    label: str
    start: int
    end: int
    start_char: int | None
    end_char: int | None
    text: str
    probability: float | None


@dataclass(frozen=True)
class Parse:
    """A tree, its score under the objective, log p(tree) with its sign, and p(tree | sentence).

    `probability` is p(tree | sentence); None where the estimates of the two differ in sign or the
    tree's is the larger one, since their ratio is no probability then. Constituents are those of
    the tree, in pre-order, without the tags of words; `leaves` are its tags and words.
    """

    leaves: tuple[tuple[str, str], ...]
    constituents: tuple[Constituent, ...]
    score: float
    sign: int | None
    log_probability: float | None
    probability: float | None

    @cached_property
    def tree(self) -> Tree:
        """The tree, made when it is asked for: to make it takes longer than to write it."""
        return tree_of(self.constituents, self.leaves)

    @cached_property
    def brackets(self) -> str:
        """The tree in Penn brackets."""
        return brackets_of(self.constituents, self.leaves)


def brackets_of(constituents: Iterable[Constituent], leaves: Sequence[tuple[str, str]]) -> str:
    """Write the tree of constituents in pre-order and of tags with words, without checking it."""
    written: list[str] = []
    ends: list[int] = []
    word = 0
    for one in constituents:
        word = _write_words(written, ends, leaves, word, one.start)
        written.append(f" ({one.label}")
        ends.append(one.end)
    _write_words(written, ends, leaves, word, len(leaves))
    return "".join(written)[1:]


def _write_words(
    written: list[str],
    ends: list[int],
    leaves: Sequence[tuple[str, str]],
    word: int,
    until: int,
) -> int:
    """Write the words before `until`, and close the constituents that end there."""
    for tag, form in leaves[word:until]:
        written.append(f" ({tag} {form})")
        word += 1
        while ends and ends[-1] == word:
            written.append(")")
            ends.pop()
    return until


def tree_of(constituents: Sequence[Constituent], leaves: Sequence[tuple[str, str]]) -> Tree:
    """Make the tree of constituents in pre-order, and of tags with words."""
    done = [(Tree(tag, (), word), place) for place, (tag, word) in enumerate(leaves)]
    for one in reversed(constituents):
        below = bisect_left(done, one.start, key=itemgetter(1))
        above = bisect_left(done, one.end, key=itemgetter(1))
        children = tuple(tree for tree, _ in done[below:above])
        done[below:above] = [(Tree(one.label, children), one.start)]
    return done[0][0]


@dataclass(frozen=True, slots=True, repr=False)
class Analysis:
    """The answer to one sentence. A partial or failed one has a `reason`.

    `parses` are its trees, the best one first; `tree`, `probability` and `constituents` are those
    of the best. Printed, an analysis is its best tree; a notebook draws it.
    """

    sentence: Sentence
    status: Status
    reason: str | None
    tokens: tuple[Token, ...]
    sign: int | None
    log_probability: float | None
    negative: bool
    clipped_mass: float
    parses: tuple[Parse, ...]
    unusual: float | None = None
    """How many training sentences of about its length surprise the model less, in percent; None
    where the model does not know."""

    @property
    def tree(self) -> Tree | None:
        """The best tree; None where the sentence has none."""
        return self.parses[0].tree if self.parses else None

    @property
    def probability(self) -> float | None:
        """How likely the best tree is, given the sentence."""
        return self.parses[0].probability if self.parses else None

    @property
    def constituents(self) -> tuple[Constituent, ...]:
        """The labelled spans of the best tree, in pre-order."""
        return self.parses[0].constituents if self.parses else ()

    def __str__(self) -> str:
        return self.parses[0].brackets if self.parses else f"{self.status}: {self.reason}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook."""
        return escape(str(self)) if self.tree is None else self.tree.draw()


class Analyses(list[Analysis]):
    """The answers to several sentences, in their order. Printed, a tree a line."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        """Return HTML for a notebook."""
        return "".join(f"<p>{one._repr_html_()}</p>" for one in self)


@dataclass(frozen=True, slots=True)
class SpanMarginal:
    """A label over a span: how probable it is, and its raw marginal μ.

    `probability` is made of votes, the members' magnitudes |μ| / |p(x)|, and is in [0, 1]. `sign`
    and `log_magnitude` are those of μ = (the members' mean signed μ / p(x)) · p(x), which may be
    negative or above p(x).
    """

    label: str
    start: int
    end: int
    probability: float
    sign: int
    log_magnitude: float


@dataclass(frozen=True, slots=True)
class Cell:
    """A span and the expected number of labels over it; one that a tree has twice counts once."""

    start: int
    end: int
    expected: float


@dataclass(frozen=True, slots=True)
class Marginals:
    """The posteriors of labelled spans of one sentence.

    `clipped_mass` says how far the items' mean signed μ / p(x) lie outside of [0, 1], all together.
    Votes have no such part: it measures how far from probabilities the spectral estimates are.
    """

    sentence: Sentence
    status: Status
    reason: str | None
    sign: int | None
    log_probability: float | None
    clipped_mass: float
    spans: tuple[SpanMarginal, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class TreeProbability:
    """log p(tree), log p(sentence) and log p(tree | sentence), with the tree's sign.

    If p(tree) is zero, `reason` names the missing rule or word. A value that does not apply is
    None.
    """

    log_probability: float | None
    sign: int
    sentence_log_probability: float | None
    conditional_log_probability: float | None
    reason: str | None
    missing: tuple[int, ...] = ()
    """Nodes of the normalized tree, in pre-order, whose rule or word the grammar does not have."""
