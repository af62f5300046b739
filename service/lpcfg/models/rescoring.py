"""The rescoring layer as the store keeps it: half-precision tables, vectors of words in bytes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpcfg.engine.rescoring.features import HASH
from lpcfg.engine.rescoring.hidden import Hidden
from lpcfg.engine.rescoring.layer import Layer, Vectors
from lpcfg.engine.rescoring.names import HeadTable, Rows, labels_of
from lpcfg.errors import GrammarError
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Grammar, frozen
from lpcfg.grammar.tagging import FREQUENT
from lpcfg.models.parts import Parts
from lpcfg.models.store.files import join

Arrays = dict[str, NDArray[Any]]
PREFIX = "rescoring."
LAYER_TENSORS = (
    *("weight", "heads.rank", "heads.rightmost", "vectors", "vectors.scale"),
    *(f"hidden.{name}" for name in Hidden._fields),
)
HALVES = 65504.0
"""The largest number of half precision, which is the range of weights."""
LARGEST_SCALE = 1e3
"""Vectors of words have lengths around one."""


def check_layer(parts: Parts) -> None:
    """Raise StoreError unless the pieces of the layer have types and numbers that it can take.

    `Layer` checks the shapes of its tables when it is made.
    """
    parts.integer(PREFIX + "hash", 0, (1 << 32) - 1)
    parts.number(PREFIX + "trust", 0, HALVES)
    parts.numbers(PREFIX + "weight", "F16", (None,), -HALVES, HALVES)
    if "calibration" in parts.field("rescoring"):
        parts.number_lists(PREFIX + "calibration", least=2)
    _check_heads(parts)
    if "words" in parts.field("rescoring"):
        words = len(parts.strings(PREFIX + "words", least=1))
        parts.strings(PREFIX + "suffixes")
        parts.tensor(PREFIX + "vectors", "I8", (words, None))
        parts.numbers(PREFIX + "vectors.scale", "F32", (words,), 0, LARGEST_SCALE)
        for name in Hidden._fields:
            sizes = (None,) * (3 if name == "length" else 2)
            parts.numbers(f"{PREFIX}hidden.{name}", "F16", sizes, -HALVES, HALVES)


def _check_heads(parts: Parts) -> None:
    """Check that every label has ranks, and that every rank has its column in `rightmost`."""
    labels = parts.strings(PREFIX + "head_labels")
    symbols = (*parts.field("symbols"), *parts.described.get("fallback", ()))
    missing = {label for symbol in symbols for label in labels_of(symbol)} - set(labels)
    if missing:
        found = f"none of {join(sorted(missing))}"
        raise parts.refused(PREFIX + "head_labels", "the labels of all symbols", found)
    shape = (len(labels), None)
    ranks = parts.numbers(PREFIX + "heads.rightmost", "U8", shape, 0, 1).shape[1]
    parts.numbers(PREFIX + "heads.rank", "I16", (len(labels), len(labels)), 0, ranks - 1)


def layer_parts(layer: Layer) -> tuple[Arrays, dict[str, object]]:
    """Return the arrays of a layer, and its description in the model's grammar file."""
    arrays: Arrays = {
        "weight": layer.weight.astype(np.float16),
        "heads.rank": layer.heads.rank.astype(np.int16),
        "heads.rightmost": layer.heads.rightmost.astype(np.uint8),
    }
    described: dict[str, object] = {
        "hash": HASH,
        "trust": layer.trust,
        "head_labels": layer.heads.labels,
    }
    if layer.hidden is not None and layer.vectors is not None:
        tables = layer.hidden._asdict().items()
        arrays |= {f"hidden.{name}": table.astype(np.float16) for name, table in tables}
        arrays |= {"vectors": layer.vectors.table, "vectors.scale": layer.vectors.scale}
        described |= {"suffixes": layer.suffixes, "words": layer.vectors.words}
    return {PREFIX + name: array for name, array in arrays.items()}, described


def layer_of(
    described: dict[str, Any], tensors: Arrays, grammar: Grammar, lexicon: Lexicon
) -> Layer:
    """Rebuild the layer that was stored with a grammar. Raise GrammarError if it does not fit."""
    if described["hash"] != HASH:
        raise GrammarError(
            f"expected weights of features hashed as number {HASH}, got {described['hash']}: "
            "load the model with the version of lpcfg that trained it, or train it again"
        )
    hidden = vectors = None
    if "words" in described:
        tables = {name: tensors[f"{PREFIX}hidden.{name}"] for name in Hidden._fields}
        hidden = Hidden(**{name: table.astype(np.float32) for name, table in tables.items()})
        scale = tensors[PREFIX + "vectors.scale"]
        vectors = Vectors(tuple(described["words"]), tensors[PREFIX + "vectors"], scale)
    return Layer(
        frequent=lexicon.seen_at_least(FREQUENT),
        heads=HeadTable(
            tuple(described["head_labels"]),
            frozen(tensors[PREFIX + "heads.rank"].astype(np.int32)),
            frozen(tensors[PREFIX + "heads.rightmost"].astype(np.bool_)),
        ),
        rows=Rows.of(grammar),
        trust=float(described["trust"]),
        weight=tensors[PREFIX + "weight"].astype(np.float32),
        hidden=hidden,
        vectors=vectors,
        suffixes=tuple(described.get("suffixes", ())),
    )
