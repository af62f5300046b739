"""Ask the processor for numbers before they are read, so that kernels need not wait for memory.

Numbers that lie anywhere in megabytes are in no cache when a sentence needs them. Nothing but time
depends on asking.
"""

from collections.abc import Callable
from typing import Any

from lpcfg.base.jit import compiled, import_numba

import_numba()  # before any part of it is imported by itself

# ruff: noqa: E402, ARG001 (Numba reads the names of `_ask_for`'s arguments)
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE = 16
"""Numbers of float32 in a line of the cache."""
_LONG, _INT = ir.IntType(64), ir.IntType(32)
_BYTE = ir.IntType(8).as_pointer()
_TO_READ, _NEAREST, _DATA = (ir.Constant(_INT, k) for k in (0, 3, 1))
# without the types that Numba declares for its own use
in_place: Callable[[Any], Any] = intrinsic
writing: Any = cgutils


@compiled(borrows=True)
def ask_for(table: Any, at: int) -> None:
    """Ask for element `at` of a contiguous table, and what shares its line of the cache."""
    _ask_for(table, at)


@compiled(borrows=True)
def ask_for_all(table: Any, start: int, end: int) -> None:
    """Ask for elements start : end of a contiguous table of float32."""
    for at in range(start, end, LINE):
        _ask_for(table, at)


@in_place
def _ask_for(_: Any, table: Any, at: Any) -> tuple[Any, Callable[[Any, Any, Any, Any], Any]]:
    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, _INT, _INT, _INT])
        prefetch = writing.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [given[1]]), _BYTE)
        builder.call(prefetch, [place, _TO_READ, _NEAREST, _DATA])
        return context.get_dummy_value()

    return types.void(table, types.int64), write
