"""Check all that is stored of a dependency model before anything uses it."""

import numpy as np

from lpcfg.kinds.dependencies.inputs import FACTS
from lpcfg.kinds.dependencies.network import LAYERS, N_DISTANCES, WINDOW
from lpcfg.store.parts import Array, Parts, shown

MOST_MEMBERS = 1000
HALVES = 65504.0
"""The largest number of half precision."""
WORDS = 1e6
"""More words than any sentence has."""
LARGEST_SCORE = 1e20
"""Scores of arcs must stay below this: 10³⁰ marks what is no arc, and float32 ends at 10³⁸."""

LARGEST_CONDITION = 1e300
"""Condition numbers are facts, and those of matrices that are nearly singular are large."""

FIELDS = (
    *("kind", "names", "folded", "relations", "tags", "members", "step", "sharpness", "spectral"),
)
SPECTRAL = ("c_one", "c_inf", "up", "d", "words")


def check(parts: Parts) -> None:
    """Raise StoreError unless the pieces are a dependency model that can be used."""
    members = parts.integer("members", 1, MOST_MEMBERS)
    rows = {fact: len(parts.strings(f"names.{fact}")) + 1 for fact in FACTS}
    folded = len(parts.strings("folded"))
    vectors = parts.tensor("vectors", "I8", (folded + 1, None))
    largest = 128 * parts.number("step", 1e-12, HALVES)
    parts.number("sharpness", 1e-6, 1e3)
    known = ["vectors"]
    for k in range(members):
        shapes = _shapes(parts, f"members.{k}.", rows, vectors.shape[1])
        for name, shape in shapes.items():
            parts.numbers(f"members.{k}.{name}", "F16", shape, -HALVES, HALVES)
        known += [f"members.{k}.{name}" for name in shapes]
        _check_scores(parts, f"members.{k}.", largest)
    if "spectral" in parts.described:
        _check_spectral(parts)
        known += [f"spectral.{name}" for name in SPECTRAL]
    parts.check_names(known, FIELDS)


def _shapes(
    parts: Parts, prefix: str, rows: dict[str, int], vector: int
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter of a network (`network.initial`)."""
    relations, tags = len(parts.strings("relations", 1)), len(parts.strings("tags", 1))
    width = vector
    shapes: dict[str, tuple[int, ...]] = {}
    for fact, size in rows.items():
        table = parts.tensor(f"{prefix}table.{fact}", "F16", (size, None))
        shapes[f"table.{fact}"] = table.shape
        width += table.shape[1]
    [layer] = parts.tensor(prefix + "root", "F16", (None,)).shape
    shapes["layer0.weight"], shapes["layer0.bias"] = (WINDOW * width, layer), (layer,)
    for k in range(1, LAYERS):
        shapes[f"layer{k}.weight"], shapes[f"layer{k}.bias"] = (layer, 3 * layer), (3 * layer,)
    shapes["root"] = (layer,)
    for name in ("arc", "relation"):
        out = parts.tensor(f"{prefix}{name}.head", "F16", (layer, None)).shape[1]
        shapes |= {f"{name}.{side}": (layer, out) for side in ("head", "modifier")}
        shapes[f"{name}.distance"] = N_DISTANCES, out
    pair = parts.tensor(prefix + "pair.head", "F16", (layer, None)).shape
    shapes |= {f"pair.{side}": pair for side in ("head", "modifier")}
    shapes["arc.between"] = shapes["arc.head"]
    shapes["arc.out"] = shapes["arc.head"][1:]
    shapes["relation.out"] = shapes["relation.head"][1], relations
    shapes["relation.bias"] = (relations,)
    shapes["tag.out"], shapes["tag.bias"] = (layer, tags), (tags,)
    return shapes


def _check_scores(parts: Parts, prefix: str, largest: float) -> None:
    """Refuse parameters with which a gate or the score of an arc, a relation or a tag may overflow.

    A bound goes up through the layers: the largest number below times the largest sum of absolute
    weights of a column.
    """

    def sums(name: str) -> float:
        return float(_absolute(parts, prefix + name).sum(axis=0).max(initial=0))

    def most(name: str) -> float:
        return float(_absolute(parts, prefix + name).max(initial=0))

    below = max(largest, *(most(f"table.{fact}") for fact in FACTS))
    # What the other layers add is between −1 and 1 (recurrence.py).
    state = below * sums("layer0.weight") + most("layer0.bias") + LAYERS - 1
    state = max(state, most("root"))
    hidden = {
        name: state * (sums(f"{name}.head") + sums(f"{name}.modifier")) + most(f"{name}.distance")
        for name in ("arc", "relation")
    }
    pairs = parts.tensors[prefix + "pair.head"].shape[1]
    hidden["arc"] += WORDS * state * sums("arc.between")
    scores = {
        **{f"layer{k}.weight": state * sums(f"layer{k}.weight") for k in range(1, LAYERS)},
        "arc.out": hidden["arc"] * sums("arc.out"),
        "pair.head": state**2 * sums("pair.head") * sums("pair.modifier") * pairs,
        "relation.out": hidden["relation"] * sums("relation.out"),
        "tag.out": state * sums("tag.out"),
    }
    for name, score in scores.items():
        if not score <= LARGEST_SCORE:
            expected = f"parameters whose scores stay below {LARGEST_SCORE:g}"
            raise parts.refused(prefix + name, expected, f"a bound of {score:g}")


def _absolute(parts: Parts, name: str) -> Array:
    return np.abs(parts.tensors[name].astype(np.float32))


def _check_spectral(parts: Parts) -> None:
    words = len(parts.strings("spectral.words", least=1))
    conditions = parts.field("spectral.conditions")
    if not isinstance(conditions, dict):
        raise parts.refused("spectral.conditions", "an object of numbers", shown(conditions))
    for name in conditions:
        parts.number(f"spectral.conditions.{name}", 0, LARGEST_CONDITION)
    [k] = parts.numbers("spectral.c_one", "F64", (None,)).shape
    shapes = {"c_inf": (k,), "up": (2, k, k), "d": (k, k, k), "words": (words, k)}
    for name, shape in shapes.items():
        parts.numbers(f"spectral.{name}", "F64", shape)
