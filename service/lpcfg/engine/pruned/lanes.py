"""Products of terms and vectors, eight numbers at a time.

The terms of a rule are stored side by side in *blocks* of `LANES`: number i of term t is at

    table[start + ((t // LANES) · M + i) · LANES + t % LANES]

with m numbers a term, and M the next multiple of `LANES`; what no term fills is 0. Numba does not
find the vector instructions for loops as short as these, so they are written in the compiler's own
language. Positions in arrays are not checked, and vectors that are read have M numbers as well.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lpcfg.base.jit import compiled, import_numba
from lpcfg.base.prefetch import in_place, writing
from lpcfg.grammar.tables import Doubles, Floats, Ints, Longs, Singles

import_numba()  # before any part of it is imported by itself

# ruff: noqa: E402
from llvmlite import ir
from numba import types

LANES = 8
_SINGLE, _LONG, _LANE = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_SINGLE, LANES)
_NOTHING, _ZEROS = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(_VECTOR, [0.0] * LANES)
_LONGS = types.int64
_Typed = tuple[Any, Callable[[Any, Any, Any, Any], Any]]


@compiled()
def padded(size: int) -> int:
    """Return how many numbers the blocks have that so many numbers fill."""
    return (size + LANES - 1) // LANES * LANES


@compiled()
def in_blocks(
    table: Floats, start: Longs, terms: Ints, states: Ints, divisor: Doubles
) -> tuple[Singles, Longs]:
    """Store the terms of all rules in blocks, those of rule r divided by divisor[r].

    Rule r has terms[r] vectors of states[r] numbers from table[start[r]] on. Return the table and
    where each rule begins in it.
    """
    begin = np.zeros(len(terms) + 1, np.int64)
    for r in range(len(terms)):
        begin[r + 1] = begin[r] + padded(terms[r]) * padded(states[r])
    result = np.zeros(begin[-1], np.float32)
    for r in range(len(terms)):
        at, size = start[r], padded(states[r])
        for t in range(terms[r]):
            place = begin[r] + t // LANES * LANES * size + t % LANES
            for i in range(states[r]):
                result[place + i * LANES] = table[at] / divisor[r]
                at += 1
    return result, begin


@compiled(borrows=True)
def applied(
    table: Singles, start: int, m: int, blocks: int, x: Singles, at: int, out: Singles, to: int
) -> None:
    """Write the product of every term with x[at : at + m] to out[to :], in full blocks."""
    _applied(table, start, padded(m), blocks, x, at, out, to)


@compiled(borrows=True)
def combined(
    table: Singles,
    start: int,
    m: int,
    blocks: int,
    factor: float,
    amount: Singles,
    y: Singles,
    to: int,
) -> None:
    """Add the sum of all terms, each times factor · amount, to y[to : to + m]."""
    _combined(table, start, padded(m), blocks, np.float32(factor), amount, y, to)


@compiled(borrows=True)
def multiplied(x: Singles, at: int, y: Singles, beside: int, blocks: int, out: Singles) -> None:
    """Write the products of x[at :] and y[beside :] to `out`, for so many blocks of numbers."""
    _multiplied(x, at, y, beside, blocks, out)


@compiled(borrows=True)
def dot(x: Singles, at: int, y: Singles, beside: int, blocks: int) -> float:
    """Return the sum of the products of x[at :] and y[beside :], for so many blocks of numbers."""
    result: float = _dot(x, at, y, beside, blocks)
    return result


@compiled(borrows=True)
def largest(x: Singles, at: int, blocks: int) -> float:
    """Return the largest magnitude in so many blocks of numbers from x[at] on."""
    result: float = _largest(x, at, blocks)
    return result


@compiled(borrows=True)
def products(x: Singles, at: int, y: Singles, beside: int, blocks: int, out: Singles) -> float:
    """Write the products of x[at :] and y[beside :] to `out`, for so many blocks of numbers.
    Return the largest of them, at least 0.
    """
    result: float = _products(x, at, y, beside, blocks, out)
    return result


# In the compiler's language -----------------------------------------------------------------------
# Of these functions, Numba reads the names of the arguments, and `write` receives their values.
# ruff: noqa: ARG001


class _Writer:
    """Writes instructions on blocks of the arrays that a function was given."""

    def __init__(self, context: Any, builder: Any, signature: Any, given: Any) -> None:
        self.builder = builder
        self.given = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, given, strict=True)
        ]

    def load(self, base: Any, at: Any) -> Any:
        loaded = self.builder.load(self._place(base, at))
        loaded.align = 4
        return loaded

    def store(self, value: Any, base: Any, at: Any) -> None:
        self.builder.store(value, self._place(base, at)).align = 4

    def _place(self, base: Any, at: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(base, [at]), _VECTOR.as_pointer())

    def sums(self, count: int) -> list[Any]:
        """Return places of blocks, which begin with zeros."""
        places = [writing.alloca_once(self.builder, _VECTOR) for _ in range(count)]
        for place in places:
            self.builder.store(_ZEROS, place)
        return places

    def add_product(self, place: Any, a: Any, b: Any) -> None:
        total = self.call("llvm.fmuladd", _VECTOR, a, b, self.builder.load(place))
        self.builder.store(total, place)

    def call(self, name: str, result: Any, *given: Any) -> Any:
        kind = ir.FunctionType(result, [one.type for one in given])
        found = writing.get_or_insert_function(self.builder.module, kind, f"{name}.v{LANES}f32")
        return self.builder.call(found, given, fastmath=("reassoc",))

    def total(self, vector: Any) -> Any:
        return self.call("llvm.vector.reduce.fadd", _SINGLE, ir.Constant(_SINGLE, -0.0), vector)

    def totals(self, vectors: list[Any]) -> Any:
        """Return a block of the totals of eight blocks, in three rounds of sums of neighbours."""
        for low, high in _NEIGHBOURS:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [
                self.builder.fadd(*(self.builder.shuffle_vector(*pair, one) for one in (low, high)))
                for pair in pairs
            ]
        return vectors[0]

    def everywhere(self, number: Any) -> Any:
        """Return a block that has a number in every place."""
        first = self.builder.insert_element(_NOTHING, number, ir.Constant(_LANE, 0))
        return self.builder.shuffle_vector(first, _NOTHING, _places([0] * LANES))

    def width(self, *factors: Any) -> Any:
        """Return how many numbers the product of these numbers of blocks has."""
        product = ir.Constant(_LONG, LANES)
        for factor in factors:
            product = self.builder.mul(product, factor)
        return product

    def plus(self, at: Any, steps: int) -> Any:
        return self.builder.add(at, ir.Constant(_LONG, steps))


def _places(lanes: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(_LANE, len(lanes)), list(lanes))


_NEIGHBOURS = (
    (_places([0, 8, 2, 10, 4, 12, 6, 14]), _places([1, 9, 3, 11, 5, 13, 7, 15])),
    (_places([0, 1, 8, 9, 4, 5, 12, 13]), _places([2, 3, 10, 11, 6, 7, 14, 15])),
    (_places([0, 1, 2, 3, 8, 9, 10, 11]), _places([4, 5, 6, 7, 12, 13, 14, 15])),
)
"""The places of two blocks whose sums make one block of the next round."""


@in_place
def _applied(
    _: Any, table: Any, start: Any, size: Any, blocks: Any, x: Any, at: Any, out: Any, to: Any
) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        table, start, size, blocks, x, at, out, to = of.given
        with writing.for_range(builder, blocks) as block:
            sums = of.sums(4)  # four, because one sum would wait for itself
            first = builder.add(start, of.width(block.index, size))
            steps = builder.sdiv(size, ir.Constant(_LONG, len(sums)))
            with writing.for_range(builder, steps) as step:
                begin = builder.mul(step.index, ir.Constant(_LONG, len(sums)))
                for k, place in enumerate(sums):
                    i = of.plus(begin, k)
                    number = builder.load(builder.gep(x, [builder.add(at, i)]))
                    terms = of.load(table, builder.add(first, of.width(i)))
                    of.add_product(place, terms, of.everywhere(number))
            a, b, c, d = map(builder.load, sums)
            total = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
            of.store(total, out, builder.add(to, of.width(block.index)))
        return context.get_dummy_value()

    return types.void(table, _LONGS, _LONGS, _LONGS, x, _LONGS, out, _LONGS), write


@in_place
def _combined(
    _: Any,
    table: Any,
    start: Any,
    size: Any,
    blocks: Any,
    factor: Any,
    amount: Any,
    y: Any,
    to: Any,
) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        table, start, size, blocks, factor, amount, y, to = of.given
        with writing.for_range(builder, builder.sdiv(size, ir.Constant(_LONG, LANES))) as group:
            sums = of.sums(LANES)
            first = builder.add(start, of.width(of.width(group.index)))
            with writing.for_range(builder, blocks) as block:
                amounts = of.load(amount, of.width(block.index))
                begin = builder.add(first, of.width(block.index, size))
                for k, place in enumerate(sums):
                    of.add_product(place, of.load(table, of.plus(begin, k * LANES)), amounts)
            added = builder.fmul(of.everywhere(factor), of.totals(list(map(builder.load, sums))))
            place = builder.add(to, of.width(group.index))
            of.store(builder.fadd(of.load(y, place), added), y, place)
        return context.get_dummy_value()

    kinds = table, _LONGS, _LONGS, _LONGS, types.float32, amount, y, _LONGS
    return types.void(*kinds), write


@in_place
def _multiplied(_: Any, x: Any, at: Any, y: Any, beside: Any, blocks: Any, out: Any) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, at, y, beside, blocks, out = of.given
        with writing.for_range(builder, blocks) as block:
            here = of.width(block.index)
            one, other = of.load(x, builder.add(at, here)), of.load(y, builder.add(beside, here))
            of.store(builder.fmul(one, other), out, here)
        return context.get_dummy_value()

    return types.void(x, _LONGS, y, _LONGS, _LONGS, out), write


@in_place
def _dot(_: Any, x: Any, at: Any, y: Any, beside: Any, blocks: Any) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, at, y, beside, blocks = of.given
        (total,) = of.sums(1)
        with writing.for_range(builder, blocks) as block:
            here = of.width(block.index)
            one, other = of.load(x, builder.add(at, here)), of.load(y, builder.add(beside, here))
            of.add_product(total, one, other)
        return of.total(builder.load(total))

    return types.float32(x, _LONGS, y, _LONGS, _LONGS), write


@in_place
def _largest(_: Any, x: Any, at: Any, blocks: Any) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, at, blocks = of.given
        (most,) = of.sums(1)
        with writing.for_range(builder, blocks) as block:
            here = of.load(x, builder.add(at, of.width(block.index)))
            size = of.call("llvm.fabs", _VECTOR, here)
            builder.store(of.call("llvm.maxnum", _VECTOR, builder.load(most), size), most)
        return of.call("llvm.vector.reduce.fmax", _SINGLE, builder.load(most))

    return types.float32(x, _LONGS, _LONGS), write


@in_place
def _products(_: Any, x: Any, at: Any, y: Any, beside: Any, blocks: Any, out: Any) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, at, y, beside, blocks, out = of.given
        (most,) = of.sums(1)
        with writing.for_range(builder, blocks) as block:
            here = of.width(block.index)
            one, other = of.load(x, builder.add(at, here)), of.load(y, builder.add(beside, here))
            product = builder.fmul(one, other)
            of.store(product, out, here)
            builder.store(of.call("llvm.maxnum", _VECTOR, builder.load(most), product), most)
        return of.call("llvm.vector.reduce.fmax", _SINGLE, builder.load(most))

    return types.float32(x, _LONGS, y, _LONGS, _LONGS, out), write
