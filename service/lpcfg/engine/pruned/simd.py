"""SIMD products of terms and vectors: `LANES` numbers at a time.

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
        source, size = start[r], padded(states[r])
        for t in range(terms[r]):
            target = begin[r] + t // LANES * LANES * size + t % LANES
            for i in range(states[r]):
                result[target + i * LANES] = table[source] / divisor[r]
                source += 1
    return result, begin


@compiled(borrows=True)
def apply_terms(
    table: Singles,
    table_start: int,
    m: int,
    blocks: int,
    x: Singles,
    x_start: int,
    out: Singles,
    out_start: int,
) -> None:
    """Write terms · x[x_start : x_start + m] to out[out_start :], in full blocks."""
    _apply_terms(table, table_start, padded(m), blocks, x, x_start, out, out_start)


@compiled(borrows=True)
def add_terms(
    table: Singles,
    table_start: int,
    m: int,
    blocks: int,
    factor: float,
    amount: Singles,
    y: Singles,
    y_start: int,
) -> None:
    """Add Σ_t factor · amount[t] · term t to y[y_start : y_start + m]."""
    _add_terms(table, table_start, padded(m), blocks, np.float32(factor), amount, y, y_start)


@compiled(borrows=True)
def multiply(x: Singles, x_start: int, y: Singles, y_start: int, blocks: int, out: Singles) -> None:
    """Write x[x_start :] ∘ y[y_start :] to `out`, for so many blocks of numbers."""
    _multiply(x, x_start, y, y_start, blocks, out)


@compiled(borrows=True)
def dot(x: Singles, x_start: int, y: Singles, y_start: int, blocks: int) -> float:
    """Compute x[x_start :] · y[y_start :], over so many blocks of numbers."""
    result: float = _dot(x, x_start, y, y_start, blocks)
    return result


@compiled(borrows=True)
def largest(x: Singles, x_start: int, blocks: int) -> float:
    """Return the largest magnitude in so many blocks of numbers from x[x_start] on."""
    result: float = _largest(x, x_start, blocks)
    return result


@compiled(borrows=True)
def multiply_max(
    x: Singles, x_start: int, y: Singles, y_start: int, blocks: int, out: Singles
) -> float:
    """Write x[x_start :] ∘ y[y_start :] to `out`, for so many blocks of numbers. Return the
    largest product, at least 0.
    """
    result: float = _multiply_max(x, x_start, y, y_start, blocks, out)
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

    def load(self, base: Any, position: Any) -> Any:
        loaded = self.builder.load(self._block(base, position))
        loaded.align = 4
        return loaded

    def store(self, value: Any, base: Any, position: Any) -> None:
        self.builder.store(value, self._block(base, position)).align = 4

    def _block(self, base: Any, position: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(base, [position]), _VECTOR.as_pointer())

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
        kind = ir.FunctionType(result, [value.type for value in given])
        function = writing.get_or_insert_function(self.builder.module, kind, f"{name}.v{LANES}f32")
        return self.builder.call(function, given, fastmath=("reassoc",))

    def total(self, vector: Any) -> Any:
        return self.call("llvm.vector.reduce.fadd", _SINGLE, ir.Constant(_SINGLE, -0.0), vector)

    def totals(self, vectors: list[Any]) -> Any:
        """Return a block of the totals of eight blocks, in three rounds of sums of neighbours."""
        for low, high in _NEIGHBOURS:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            shuffle, add = self.builder.shuffle_vector, self.builder.fadd
            vectors = [add(shuffle(*pair, low), shuffle(*pair, high)) for pair in pairs]
        return vectors[0]

    def everywhere(self, number: Any) -> Any:
        """Return a block that has a number in every place."""
        first = self.builder.insert_element(_NOTHING, number, ir.Constant(_LANE, 0))
        return self.builder.shuffle_vector(first, _NOTHING, _shuffle_mask([0] * LANES))

    def width(self, *factors: Any) -> Any:
        """Return how many numbers the product of these numbers of blocks has."""
        product = ir.Constant(_LONG, LANES)
        for factor in factors:
            product = self.builder.mul(product, factor)
        return product

    def plus(self, position: Any, steps: int) -> Any:
        return self.builder.add(position, ir.Constant(_LONG, steps))


def _shuffle_mask(numbers: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(_LANE, len(numbers)), list(numbers))


_NEIGHBOURS = (
    (_shuffle_mask([0, 8, 2, 10, 4, 12, 6, 14]), _shuffle_mask([1, 9, 3, 11, 5, 13, 7, 15])),
    (_shuffle_mask([0, 1, 8, 9, 4, 5, 12, 13]), _shuffle_mask([2, 3, 10, 11, 6, 7, 14, 15])),
    (_shuffle_mask([0, 1, 2, 3, 8, 9, 10, 11]), _shuffle_mask([4, 5, 6, 7, 12, 13, 14, 15])),
)
"""Shuffles of two blocks; the sum of both results is one block of the next round."""


@in_place
def _apply_terms(
    _: Any,
    table: Any,
    table_start: Any,
    size: Any,
    blocks: Any,
    x: Any,
    x_start: Any,
    out: Any,
    out_start: Any,
) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        table, table_start, size, blocks, x, x_start, out, out_start = of.given
        # eight terms at once: Σ_i number i of every term · x[i]
        with writing.for_range(builder, blocks) as block:
            sums = of.sums(4)  # four, because one sum would wait for itself
            first = builder.add(table_start, of.width(block.index, size))
            steps = builder.sdiv(size, ir.Constant(_LONG, len(sums)))
            with writing.for_range(builder, steps) as step:
                begin = builder.mul(step.index, ir.Constant(_LONG, len(sums)))
                for k, place in enumerate(sums):
                    i = of.plus(begin, k)
                    number = builder.load(builder.gep(x, [builder.add(x_start, i)]))
                    terms = of.load(table, builder.add(first, of.width(i)))
                    of.add_product(place, terms, of.everywhere(number))
            a, b, c, d = map(builder.load, sums)
            total = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
            of.store(total, out, builder.add(out_start, of.width(block.index)))
        return context.get_dummy_value()

    return types.void(table, _LONGS, _LONGS, _LONGS, x, _LONGS, out, _LONGS), write


@in_place
def _add_terms(
    _: Any,
    table: Any,
    table_start: Any,
    size: Any,
    blocks: Any,
    factor: Any,
    amount: Any,
    y: Any,
    y_start: Any,
) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        table, table_start, size, blocks, factor, amount, y, y_start = of.given
        with writing.for_range(builder, builder.sdiv(size, ir.Constant(_LONG, LANES))) as group:
            # eight numbers of y at once, each with a block of sums over the terms
            sums = of.sums(LANES)
            first = builder.add(table_start, of.width(of.width(group.index)))
            with writing.for_range(builder, blocks) as block:
                amounts = of.load(amount, of.width(block.index))
                begin = builder.add(first, of.width(block.index, size))
                for k, place in enumerate(sums):
                    of.add_product(place, of.load(table, of.plus(begin, k * LANES)), amounts)
            added = builder.fmul(of.everywhere(factor), of.totals(list(map(builder.load, sums))))
            place = builder.add(y_start, of.width(group.index))
            of.store(builder.fadd(of.load(y, place), added), y, place)
        return context.get_dummy_value()

    kinds = table, _LONGS, _LONGS, _LONGS, types.float32, amount, y, _LONGS
    return types.void(*kinds), write


@in_place
def _multiply(_: Any, x: Any, x_start: Any, y: Any, y_start: Any, blocks: Any, out: Any) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, x_start, y, y_start, blocks, out = of.given
        with writing.for_range(builder, blocks) as block:
            here = of.width(block.index)
            a, b = of.load(x, builder.add(x_start, here)), of.load(y, builder.add(y_start, here))
            of.store(builder.fmul(a, b), out, here)
        return context.get_dummy_value()

    return types.void(x, _LONGS, y, _LONGS, _LONGS, out), write


@in_place
def _dot(_: Any, x: Any, x_start: Any, y: Any, y_start: Any, blocks: Any) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, x_start, y, y_start, blocks = of.given
        (total,) = of.sums(1)
        with writing.for_range(builder, blocks) as block:
            here = of.width(block.index)
            a, b = of.load(x, builder.add(x_start, here)), of.load(y, builder.add(y_start, here))
            of.add_product(total, a, b)
        return of.total(builder.load(total))

    return types.float32(x, _LONGS, y, _LONGS, _LONGS), write


@in_place
def _largest(_: Any, x: Any, x_start: Any, blocks: Any) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, x_start, blocks = of.given
        (maximum,) = of.sums(1)
        with writing.for_range(builder, blocks) as block:
            here = of.load(x, builder.add(x_start, of.width(block.index)))
            size = of.call("llvm.fabs", _VECTOR, here)
            builder.store(of.call("llvm.maxnum", _VECTOR, builder.load(maximum), size), maximum)
        return of.call("llvm.vector.reduce.fmax", _SINGLE, builder.load(maximum))

    return types.float32(x, _LONGS, _LONGS), write


@in_place
def _multiply_max(
    _: Any, x: Any, x_start: Any, y: Any, y_start: Any, blocks: Any, out: Any
) -> _Typed:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        of = _Writer(context, builder, signature, given)
        x, x_start, y, y_start, blocks, out = of.given
        (maximum,) = of.sums(1)
        with writing.for_range(builder, blocks) as block:
            here = of.width(block.index)
            a, b = of.load(x, builder.add(x_start, here)), of.load(y, builder.add(y_start, here))
            product = builder.fmul(a, b)
            of.store(product, out, here)
            builder.store(of.call("llvm.maxnum", _VECTOR, builder.load(maximum), product), maximum)
        return of.call("llvm.vector.reduce.fmax", _SINGLE, builder.load(maximum))

    return types.float32(x, _LONGS, y, _LONGS, _LONGS, out), write
