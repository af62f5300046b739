"""The rescoring layer as the store keeps it: all tables and the vectors of words in bytes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError
from lpcfg.engine.rescoring.domains import Domains
from lpcfg.engine.rescoring.features import HASH
from lpcfg.engine.rescoring.hidden import Hidden
from lpcfg.engine.rescoring.layer import Layer, WordVectors
from lpcfg.engine.rescoring.names import HeadTable, RowNames, labels_of
from lpcfg.engine.rescoring.quantized import QuantizedWeights, dequantize, quantize
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Grammar, Singles, frozen
from lpcfg.grammar.tagging import FREQUENT
from lpcfg.store.files import join
from lpcfg.store.parts import Parts

Arrays = dict[str, NDArray[Any]]
PREFIX = "rescoring."
LAYER_TENSORS = (
    *("weight", "heads.rank", "heads.rightmost", "vectors", "vectors.scale", "domains"),
    *(f"hidden.{name}" for name in Hidden._fields),
)
LARGEST = 65504.0
"""Beyond any learned weight: the largest number of half precision."""
LARGEST_SCALE = 1e3
"""Vectors of words have lengths around one."""


def check_layer(parts: Parts) -> None:
    """Raise StoreError unless the pieces of the layer have types and numbers that it can take.

    `Layer` checks the shapes of its tables when it is made.
    """
    parts.integer(PREFIX + "hash", 0, (1 << 32) - 1)
    parts.number(PREFIX + "trust", 0, LARGEST)
    parts.number(PREFIX + "largest.weight", 0, LARGEST)
    parts.tensor(PREFIX + "weight", "I8", (None,))
    if "calibration" in parts.field("rescoring"):
        parts.number_lists(PREFIX + "calibration", least=2)
    if "kind_calibrations" in parts.field("rescoring"):
        parts.named_number_lists(PREFIX + "kind_calibrations", least=2)
    _check_heads(parts)
    if "domains" in parts.field("rescoring"):
        kinds = len(parts.strings(PREFIX + "domains", least=2))
        parts.number(PREFIX + "largest.domains", 0, LARGEST)
        parts.tensor(PREFIX + "domains", "I8", (None, kinds))
    if "words" in parts.field("rescoring"):
        words = len(parts.strings(PREFIX + "words", least=1))
        parts.strings(PREFIX + "suffixes")
        parts.tensor(PREFIX + "vectors", "I8", (words, None))
        parts.numbers(PREFIX + "vectors.scale", "F32", (words,), 0, LARGEST_SCALE)
        for name in Hidden._fields:
            sizes = (None,) * (3 if name == "length" else 2)
            parts.number(f"{PREFIX}largest.{name}", 0, LARGEST)
            parts.tensor(f"{PREFIX}hidden.{name}", "I8", sizes)


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
    levels = {}
    if layer.hidden is not None:
        levels = {name: quantize(table) for name, table in layer.hidden._asdict().items()}
    arrays: Arrays = {
        "weight": layer.weight.table,
        **{f"hidden.{name}": one.table for name, one in levels.items()},
        "heads.rank": layer.heads.rank.astype(np.int16),
        "heads.rightmost": layer.heads.rightmost.astype(np.uint8),
    }
    if layer.domains is not None:
        levels["domains"] = quantize(layer.domains.weight)
        arrays["domains"] = levels["domains"].table
    described: dict[str, object] = {
        "hash": HASH,
        "trust": layer.prior_weight,
        "largest": {name: one.largest for name, one in {"weight": layer.weight, **levels}.items()},
        "head_labels": layer.heads.labels,
    }
    if layer.domains is not None:
        described["domains"] = layer.domains.names
    if layer.vectors is not None:
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
    largest = described["largest"]

    def table(name: str, folder: str = "") -> Singles:
        return dequantize(QuantizedWeights(tensors[PREFIX + folder + name], float(largest[name])))

    hidden = vectors = None
    if "words" in described:
        hidden = Hidden(*(table(name, "hidden.") for name in Hidden._fields))
        scale = tensors[PREFIX + "vectors.scale"]
        vectors = WordVectors(tuple(described["words"]), tensors[PREFIX + "vectors"], scale)
    domains = None
    if "domains" in described:
        domains = Domains(tuple(described["domains"]), table("domains"))
    return Layer(
        frequent=lexicon.seen_at_least(FREQUENT),
        heads=HeadTable(
            tuple(described["head_labels"]),
            frozen(tensors[PREFIX + "heads.rank"].astype(np.int32)),
            frozen(tensors[PREFIX + "heads.rightmost"].astype(np.bool_)),
        ),
        rows=RowNames.of(grammar),
        prior_weight=float(described["trust"]),
        weight=QuantizedWeights(tensors[PREFIX + "weight"], float(largest["weight"])),
        hidden=hidden,
        vectors=vectors,
        suffixes=tuple(described.get("suffixes", ())),
        domains=domains,
    )
