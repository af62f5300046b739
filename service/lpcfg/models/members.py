"""Members' tables as the store keeps them: float16 with one scale per term, or in full precision.

Tables that were loaded stay in the mapped file until somebody asks for them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from lpcfg.grammar.tables import Doubles, Floats, Grammar, Tables

Arrays = dict[str, NDArray[Any]]
_SIDES = ("parent", "left", "right")


class StoredMembers(Sequence[Tables]):
    """The members in a store's arrays. Each use of one makes its tables anew, in float32.

    A parser uses them once. In `en` they take 29 MB, and 14 MB of the file as they are stored.
    """

    def __init__(self, grammar: Grammar, tensors: Mapping[str, NDArray[Any]], count: int) -> None:
        self._grammar = grammar
        names = ("states", "terms", "c_one", *_SIDES, "c_inf", "scale", "c_inf_scale")
        prefixes = [f"members.{k}." for k in range(count)]
        self._parts = [
            {name: tensors[prefix + name] for name in names if prefix + name in tensors}
            for prefix in prefixes
        ]

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, k: int) -> Tables: ...

    @overload
    def __getitem__(self, k: slice) -> tuple[Tables, ...]: ...

    def __getitem__(self, k: int | slice) -> Tables | tuple[Tables, ...]:
        if isinstance(k, slice):
            return tuple(_member(self._grammar, part) for part in self._parts[k])
        return _member(self._grammar, self._parts[k])

    @property
    def states(self) -> int:
        """The largest number of latent states of any symbol."""
        return max((int(part["states"].max()) for part in self._parts), default=1)


def member_arrays(prefix: str, tables: Tables, exact: bool) -> Arrays:
    """Return the arrays of a member under these names; `exact` keeps its numbers as they are."""
    arrays: Arrays = {"states": tables.states, "terms": tables.terms, "c_one": tables.c_one}
    if exact:
        arrays.update({side: getattr(tables, side) for side in (*_SIDES, "c_inf")})
    else:
        scale = np.ones(int(tables.terms.sum()))
        for k, side in enumerate(_SIDES):
            rows = np.repeat(tables.states[tables.grammar.rules[:, k]], tables.terms)
            arrays[side], largest = _halved(getattr(tables, side), rows)
            scale = scale * largest
        arrays["scale"] = scale.astype(np.float32)
        rows = tables.states[tables.grammar.entries[:, 0]]
        arrays["c_inf"], largest = _halved(tables.c_inf, rows)
        arrays["c_inf_scale"] = largest.astype(np.float32)
    return {prefix + name: array for name, array in arrays.items()}


def _halved(flat: Floats, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float16], Doubles]:
    """Split rows of these lengths into float16 values and float64 scales (largest magnitudes)."""
    if not len(rows):
        return np.empty(0, np.float16), np.empty(0)
    starts = np.cumsum(rows) - rows
    largest = np.maximum.reduceat(np.abs(flat), starts).astype(np.float64)
    largest[largest == 0] = 1.0
    return (flat / np.repeat(largest, rows)).astype(np.float16), largest


def _member(grammar: Grammar, stored: Mapping[str, NDArray[Any]]) -> Tables:
    part = {name: stored[name] for name in ("states", "terms", "c_one", *_SIDES, "c_inf")}
    if part["parent"].dtype == np.float16:
        for name in (*_SIDES, "c_inf"):
            part[name] = part[name].astype(np.float32)
        rows = np.repeat(part["states"][grammar.rules[:, 0]], part["terms"])
        part["parent"] *= np.repeat(stored["scale"], rows)
        rows = part["states"][grammar.entries[:, 0]]
        part["c_inf"] *= np.repeat(stored["c_inf_scale"], rows)
    return Tables(grammar=grammar, **part)
