"""A dependency model: its inputs, its classes and its networks, and its stored form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpcfg.engine.exact.scaled import SignedLog
from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.kinds.dependencies.checks import check
from lpcfg.kinds.dependencies.inputs import FACTS, Inputs
from lpcfg.kinds.dependencies.network import Parameters
from lpcfg.kinds.dependencies.spectral import Operators
from lpcfg.kinds.dependencies.vocabulary import Vocabulary
from lpcfg.store.files import Bundle
from lpcfg.store.parts import Parts
from lpcfg.store.versions import Stored

_OPERATORS = ("c_one", "c_inf", "up", "d", "words")
KIND = "dependencies"
"""The `kind` of these models in the facts of a manifest."""


@dataclass(frozen=True, eq=False)
class DependencyModel:
    """Networks whose scores are averaged, over the same inputs and the same classes.

    Scores of arcs are multiplied by `inverse_temperature` before they become probabilities.
    """

    inputs: Inputs
    relations: tuple[str, ...]
    tags: tuple[str, ...]
    members: tuple[Parameters, ...]
    inverse_temperature: float = 1.0
    spectral: "SpectralTrees | None" = None


@dataclass(frozen=True, eq=False)
class SpectralTrees:
    """p(words | topology) by Algorithm 1, and the words that it numbers."""

    vocabulary: Vocabulary
    operators: Operators

    def probability(self, arcs: Arcs) -> SignedLog:
        """Compute p(words | topology) of a dependency tree, with its sign."""
        return self.operators.probability(self.vocabulary.numbers(arcs.words), arcs.heads)


def to_bundle(model: DependencyModel, *, facts: Mapping[str, object], card: str) -> Bundle:
    """Build the stored form: parameters in half precision, eigenwords in bytes, names as JSON."""
    tensors: dict[str, Any] = {"vectors": model.inputs.vectors}
    for k, member in enumerate(model.members):
        for name, array in member.items():
            tensors[f"members.{k}.{name}"] = array.astype(np.float16)
    spectral: dict[str, object] = {}
    if model.spectral is not None:
        operators = model.spectral.operators
        tensors.update({f"spectral.{name}": getattr(operators, name) for name in _OPERATORS})
        spectral = {
            "spectral": {
                "words": list(model.spectral.vocabulary.names),
                "conditions": operators.conditions,
            }
        }
    described: dict[str, object] = {
        "kind": KIND,
        "names": {fact: list(model.inputs.names[fact]) for fact in FACTS},
        "folded": list(model.inputs.folded),
        "relations": list(model.relations),
        "tags": list(model.tags),
        "members": len(model.members),
        "step": model.inputs.step,
        "sharpness": model.inverse_temperature,
        **spectral,
    }
    return Bundle(tensors, described, {"kind": KIND, **facts}, card)


def from_bundle(stored: Stored | Bundle) -> DependencyModel:
    """Return the model that was stored. Raise StoreError if the stored data are not a model."""
    parts = Parts.of(stored)
    parts.check_kind(KIND, "a model that `lpcfg dep train` made")
    check(parts)
    described: dict[str, Any] = dict(stored.grammar)
    names = {fact: tuple(described["names"][fact]) for fact in FACTS}
    return DependencyModel(
        Inputs(names, tuple(described["folded"]), stored.tensors["vectors"], described["step"]),
        tuple(described["relations"]),
        tuple(described["tags"]),
        tuple(_member(f"members.{k}.", stored.tensors) for k in range(described["members"])),
        described["sharpness"],
        _spectral(described.get("spectral"), stored.tensors),
    )


def _spectral(described: dict[str, Any] | None, tensors: Mapping[str, Any]) -> SpectralTrees | None:
    if described is None:
        return None
    arrays = {name: np.asarray(tensors[f"spectral.{name}"], np.float64) for name in _OPERATORS}
    operators = Operators(**arrays, conditions=dict(described["conditions"]))
    return SpectralTrees(Vocabulary(tuple(described["words"])), operators)


def _member(prefix: str, tensors: Mapping[str, Any]) -> Parameters:
    return {
        name.removeprefix(prefix): np.ascontiguousarray(array, np.float32)
        for name, array in tensors.items()
        if name.startswith(prefix)
    }
