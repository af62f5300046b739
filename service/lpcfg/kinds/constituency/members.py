"""Members' tables as the store keeps them: float16 with one scale per term, or in full precision.

Tables that were loaded stay in the mapped file until somebody asks for them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from lpcfg.grammar.tables import Doubles, Floats, Grammar, Offsets, Tables

Arrays = dict[str, NDArray[Any]]
_SIDES = ("parent", "left", "right")


class StoredMember(Offsets):
    """A member in a store's arrays. Each use of a side makes it anew, in float32."""

    def __init__(self, grammar: Grammar, tensors: Mapping[str, NDArray[Any]], prefix: str) -> None:
        self.grammar = grammar
        self.states, self.terms = tensors[prefix + "states"], tensors[prefix + "terms"]
        self.c_one: Floats = tensors[prefix + "c_one"]
        self._stored = {name: tensors[prefix + name] for name in (*_SIDES, "c_inf")}
        self._scale = tensors.get(prefix + "scale")
        self._c_inf_scale = tensors.get(prefix + "c_inf_scale")

    @property
    def parent(self) -> Floats:
        rows = np.repeat(self.states[self.grammar.rules[:, 0]], self.terms)
        return self._scaled("parent", self._scale, rows)

    @property
    def left(self) -> Floats:
        return self._scaled("left")

    @property
    def right(self) -> Floats:
        return self._scaled("right")

    @property
    def c_inf(self) -> Floats:
        rows = self.states[self.grammar.entries[:, 0]]
        return self._scaled("c_inf", self._c_inf_scale, rows)

    def _scaled(
        self, name: str, scale: Floats | None = None, rows: NDArray[Any] | None = None
    ) -> Floats:
        """Return numbers of full precision as they are, and others in float32, times their scales,
        each of which is that of so many `rows` of numbers.
        """
        stored = self._stored[name]
        if stored.dtype != np.float16:
            return stored
        numbers = stored.astype(np.float32)
        if scale is not None and rows is not None:
            numbers *= np.repeat(scale, rows)
        return numbers

    def tables(self) -> Tables:
        """Return the member's tables, 29 MB in `en`."""
        sides = {name: getattr(self, name) for name in (*_SIDES, "c_inf")}
        return Tables(self.grammar, self.states, self.terms, c_one=self.c_one, **sides)


class StoredMembers(Sequence[Tables]):
    """The members in a store's arrays. Each use of one makes its tables anew."""

    def __init__(self, grammar: Grammar, tensors: Mapping[str, NDArray[Any]], count: int) -> None:
        self.stored = [StoredMember(grammar, tensors, f"members.{k}.") for k in range(count)]

    def __len__(self) -> int:
        return len(self.stored)

    @overload
    def __getitem__(self, k: int) -> Tables: ...

    @overload
    def __getitem__(self, k: slice) -> tuple[Tables, ...]: ...

    def __getitem__(self, k: int | slice) -> Tables | tuple[Tables, ...]:
        if isinstance(k, slice):
            return tuple(one.tables() for one in self.stored[k])
        return self.stored[k].tables()


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
