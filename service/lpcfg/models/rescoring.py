"""The rescoring layer as the store keeps it: half-precision tables, vectors of words in bytes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpcfg.engine.rescoring.features import HASH
from lpcfg.engine.rescoring.hidden import Hidden
from lpcfg.engine.rescoring.layer import Layer, Vectors
from lpcfg.engine.rescoring.names import HeadTable, Rows
from lpcfg.errors import GrammarError
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Grammar, frozen
from lpcfg.grammar.tagging import FREQUENT

Arrays = dict[str, NDArray[Any]]
PREFIX = "rescoring."


def layer_parts(layer: Layer) -> tuple[Arrays, dict[str, object]]:
    """The arrays of a layer, and what its model's grammar file says of it."""
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
    """The layer that was stored with a grammar; raises GrammarError where it does not fit."""
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
