"""Rescoring layers with random numbers."""

import numpy as np
from numpy.random import Generator

from lpcfg.engine.rescoring.domains import Domains
from lpcfg.engine.rescoring.hidden import LENGTHS, POSITIONS, Hidden
from lpcfg.engine.rescoring.layer import Layer, WordVectors
from lpcfg.engine.rescoring.names import HeadTable, RowNames, labels_of
from lpcfg.engine.rescoring.quantized import quantize, rounded
from lpcfg.grammar.tables import Grammar

TINY = Grammar(
    ("S", "A", "B"),
    1,
    np.array([[0, 1, 2]], np.int32),
    ("a", "b"),
    np.array([[1, 0], [2, 1]], np.int32),
)
"""S → A B over `a b`."""


def flat_heads(grammar: Grammar) -> HeadTable:
    """Build head rules by which every label wants every child alike, and the last of them."""
    labels = sorted({label for symbol in grammar.symbols for label in labels_of(symbol)})
    rank = np.zeros((len(labels), len(labels)), np.int32)
    return HeadTable(tuple(labels), rank, np.ones((len(labels), 1), np.bool_))


def random_hidden(
    rng: Generator, rows: RowNames, *, width: int, dimensions: int, suffixes: int
) -> Hidden:
    """Draw tables for these rows; the last rows of labels and rules are zero."""
    wide = POSITIONS * width
    shapes = (
        *((dimensions, wide), (len(rows.tags) + 1, wide), (suffixes + 1, wide)),
        *((3, LENGTHS, width), (len(rows.labels) + 1, width), (len(rows.rules) + 1, width)),
    )
    hidden = Hidden(*(rng.normal(size=shape).astype(np.float32) / 4 for shape in shapes))
    hidden.label[-1] = hidden.rule[-1] = 0.0
    return hidden


def random_layer(grammar: Grammar, seed: int = 0, bits: int = 10) -> Layer:
    """Draw a layer with both parts, whose numbers bytes hold."""
    rng, rows, words = np.random.default_rng(seed), RowNames.of(grammar), ("the", "dog", "cat", "a")
    hidden = random_hidden(rng, rows, width=4, dimensions=3, suffixes=2)
    weight = quantize(rng.normal(size=1 << bits).astype(np.float32) / 4)
    vectors = WordVectors.of(words, rng.normal(size=(4, 3)).astype(np.float32))
    kinds = rounded(rng.normal(size=(8, 2)).astype(np.float32))
    return Layer(
        frequent=frozenset(words),
        heads=flat_heads(grammar),
        rows=rows,
        prior_weight=0.5,
        weight=weight,
        hidden=Hidden(*map(rounded, hidden)),
        vectors=vectors,
        suffixes=("the", "dog"),
        domains=Domains(("letters", "talk"), kinds),
    )
