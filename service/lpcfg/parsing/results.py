"""Requests and results of parsing: plain values, shared by commands and service.

Spans are half-open. `start` and `end` of constituents count tokens; those of tokens and sentences
count code points of their text (None without a text). Probabilities are in [0, 1], and calibrated
if the model is; logs are natural.
"""

from dataclasses import dataclass
from typing import Literal

from lpcfg.trees.tree import Tree

Status = Literal["parsed", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constituent the analysis must have: over [start, end), with this label if given."""

    start: int
    end: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to analyse: the caller's own tokens, with tags and constraints the caller knows.

    `forms` are the tokens as the treebanks write them (brackets, quotes); `offsets` are the tokens'
    places in `text`, which begins at `start` of the text that was sent.
    """

    tokens: tuple[str, ...]
    tags: tuple[str | None, ...] | None = None
    constraints: tuple[Constraint, ...] = ()
    id: str | int | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None
    forms: tuple[str, ...] | None = None
    offsets: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Options of parsing: `k` trees under an objective, with calibrated or raw probabilities."""

    k: int = 1
    objective: str = "max-rule"
    calibrated: bool = True


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its tag in the best tree, and that tag's probability."""

    text: str
    start: int | None
    end: int | None
    tag: str | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class Constituent:
    """A labelled span of a tree, and the probability that it is right."""

    label: str
    start: int
    end: int
    start_char: int | None
    end_char: int | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class Parse:
    """A tree, its score under the objective, and log p(tree) with its sign.

    Constituents are those of the tree, in pre-order, without the tags of words.
    """

    tree: Tree
    score: float
    sign: int | None
    log_probability: float | None
    constituents: tuple[Constituent, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The answer to one sentence. A partial or failed one has a `reason`."""

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
    """A span and the expected number of constituents over it."""

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
