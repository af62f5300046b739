"""Let the hidden part begin with what the layer of another model has learned.

The vectors of words that a layer is learned over come with tables that fit them. Rows of the same
tags, ends of words, labels and rules are taken from there, the others are random. So a small
treebank begins with what larger ones taught: gum/dev has 86.5 after a layer of CRAFT, MASC and
GENIA, and 85.8 without. CRAFT itself, with three times as many trees, gains nothing.
"""

from collections.abc import Sequence

import numpy as np

from lpcfg.engine.rescoring.hidden import Hidden
from lpcfg.engine.rescoring.layer import Layer
from lpcfg.engine.rescoring.names import RowNames

SHARE = np.float32(0.5)
"""Inherited numbers are multiplied by this (Ash and Adams, NeurIPS 2020).

In full, they remember the trees that they were learned from. Where these are among the new
model's, as those of GUM are in `en`, the last fold no longer tells how sure a model may be of new
text: it has 85.9 F1 where gum/dev has 85.5. With halves it has 85.6, and gum/dev the same.
"""


def fits(layer: Layer | None, width: int) -> bool:
    """Return True if a layer has a hidden part of this width."""
    return layer is not None and layer.hidden is not None and layer.hidden.label.shape[1] == width


def inherit(tables: Hidden, rows: RowNames, suffixes: Sequence[str], layer: Layer) -> None:
    """Write rows of a layer's hidden part, halved, into tables, wherever names are the same."""
    if layer.hidden is None:
        raise ValueError("expected a layer with a hidden part, got one without")
    old, other = layer.hidden, layer.rows
    tables.word[:], tables.length[:] = SHARE * old.word, SHARE * old.length
    named = (
        (tables.tag, (*rows.tags, ""), old.tag, (*other.tags, "")),  # "": beside the sentence
        (tables.suffix, ("", *suffixes), old.suffix, ("", *layer.suffixes)),  # "": other ends
        (tables.label, rows.labels, old.label, other.labels),
        (tables.rule, rows.rules, old.rule, other.rules),
    )
    for table, names, old_table, old_names in named:
        old_row = {name: k for k, name in enumerate(old_names)}
        shared = [k for k, name in enumerate(names) if name in old_row]
        table[shared] = SHARE * old_table[[old_row[names[k]] for k in shared]]
