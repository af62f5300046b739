"""Requests and results of parsing: plain values, shared by commands and service.

Spans are half-open. `start` and `end` of constituents count tokens; those of tokens and sentences
count code points of their text (None without a text). Probabilities are in [0, 1], and calibrated
if the model is; logs are natural.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple

from lpcfg.errors import InputError
from lpcfg.trees.tree import Tree

Status = Literal["parsed", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constituent the analysis must have: over [start, end), with this label if given.

    `start` and `end` count tokens: `Constraint(1, 3, "NP")` wants the second and third to be an NP.
    With `forbid`, the analysis must not have it.
    """

    start: int
    end: int
    label: str | None = None
    forbid: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to analyse: the caller's own tokens, with tags and constraints the caller knows.

    `tags` has a tag or None for each token; `constraints` say what the tree must contain, also as
    plain (start, end) or (start, end, label). `forms` are the tokens as the treebanks write them
    (brackets, quotes); `offsets` are the tokens' places in `text`, which begins at `start` of what
    the caller sent.

    >>> sentence = lpcfg.Sentence(["Time", "flies", "."], tags=["NN", "VBZ", None])
    >>> [token.tag for token in parser.parse([sentence])[0].tokens]
    ['NN', 'VBZ', '.']
    """

    tokens: Sequence[str]
    tags: Sequence[str | None] | None = None
    constraints: Sequence[Constraint] = ()
    id: str | int | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None
    forms: tuple[str, ...] | None = None
    offsets: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        """Keep sequences as tuples, so that sentences can be compared and cached."""
        tokens = self.tokens
        if isinstance(tokens, str) or not isinstance(tokens, Sequence):
            raise InputError(
                f"expected tokens as a list of strings, got {tokens!r}: split it into tokens, or "
                "give text to `parse` as it is",
                pointer="/tokens",
            )
        object.__setattr__(self, "tokens", tuple(tokens))
        object.__setattr__(self, "tags", None if self.tags is None else tuple(self.tags))
        object.__setattr__(self, "constraints", tuple(map(constraint_of, self.constraints)))


def constraint_of(given: object) -> Constraint:
    """Read (start, end) or (start, end, label) as a constraint."""
    if isinstance(given, Constraint):
        return given
    if isinstance(given, tuple | list) and len(given) in (2, 3):
        start, end, label = (*given, None)[:3]
        if type(start) is type(end) is int and (label is None or isinstance(label, str)):
            return Constraint(start, end, label)
    raise InputError(
        f"expected constraints as (start, end) or (start, end, label), got {given!r}: count tokens "
        'from 0, as in (0, 2, "NP")',
        pointer="/constraints",
    )


@dataclass(frozen=True, slots=True)
class Options:
    """Options of parsing: `k` trees under an objective, with calibrated or raw probabilities.

    Without an objective, `engine.pruned.decode` says which one is taken.

    `rescore` lets the model's rescoring layer decide, if it has one; otherwise the tensors do.
    """

    k: int = 1
    objective: str | None = None
    calibrated: bool = True
    rescore: bool = True


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


@dataclass(frozen=True, slots=True)
class Parse:
    """A tree, its score under the objective, log p(tree) with its sign, and p(tree | sentence).

    `probability` is p(tree | sentence); None where the estimates of the two differ in sign or the
    tree's is the larger one, since their ratio is no probability then. Constituents are those of
    the tree, in pre-order, without the tags of words.
    """

    tree: Tree
    score: float
    sign: int | None
    log_probability: float | None
    probability: float | None
    constituents: tuple[Constituent, ...]


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
        return f"{self.status}: {self.reason}" if self.tree is None else str(self.tree)

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
