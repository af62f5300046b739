"""The pieces of a stored model, each checked as it is taken.

A version's seal and hashes say that it is what was published, not that it can be used: whoever can
write a version can seal it. Compiled kernels do not check their indices, so nothing reaches them
before its type, shape and range are known. A StoreError names the file, the piece, what was
expected, what was found, and the cure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import StoreError
from lpcfg.store.files import DTYPES, GRAMMAR, TENSORS, Bundle, join
from lpcfg.store.versions import Stored

Array = NDArray[Any]

CURE = "publish the model again, or restore it from a copy"
LARGEST = 1e15
"""Numbers of trained tables stay below 10⁷. Products of a few such numbers fit into a float32."""
_LONGEST = 200  # characters of a value in a message
_LARGEST_HALF = 65504.0  # the largest finite number of half precision
_DEEPEST = 32  # levels of the facts in a manifest, which answers contain


@dataclass(frozen=True, eq=False)
class Parts:
    """The tensors and the description of one model."""

    tensors: Mapping[str, Array]
    described: Mapping[str, Any]
    folder: str = ""

    @classmethod
    def of(cls, stored: Stored | Bundle) -> "Parts":
        """Return the pieces of a stored version, or of a bundle that is not stored yet."""
        if isinstance(stored, Bundle):
            return cls(stored.tensors, stored.grammar)
        check_facts(stored)
        return cls(stored.tensors, stored.grammar, stored.reference.folder + "/")

    def refused(self, name: str, expected: str, found: object) -> StoreError:
        """Return the error about one piece: a tensor, or what a path in grammar.json leads to."""
        file = TENSORS if name in self.tensors else GRAMMAR
        return refused(f"{self.folder}{file} `{name}`", expected, found)

    def check_kind(self, kind: str, cure: str) -> None:
        """Refuse a model of another kind. Those that name none are of constituents."""
        found = self.described.get("kind", "constituency")
        if found != kind:
            raise StoreError(
                f"{self.folder}{GRAMMAR}: expected a model of kind `{kind}`, found {shown(found)}: "
                f"name {cure}, or use the commands for that kind"
            )

    # Tensors --------------------------------------------------------------------------------------

    def check_names(self, tensors: Sequence[str], fields: Sequence[str]) -> None:
        """Refuse tensors and fields of grammar.json that a model of this kind does not have."""
        for names, known in ((self.tensors, tensors), (self.described, fields)):
            for name in sorted(names.keys() - set(known)):
                raise self.refused(name, f"nothing but {join(sorted(known))}", "this as well")

    def tensor(self, name: str, dtypes: str, shape: tuple[int | None, ...]) -> Array:
        """Return a tensor of one of these dtypes (`F32 F64`) and this shape; None: any size."""
        array = self.tensors.get(name)
        sizes = " x ".join("any" if size is None else str(size) for size in shape)
        expected = f"a tensor of {' or '.join(dtypes.split())} and {sizes} numbers"
        if array is None:
            raise refused(f"{self.folder}{TENSORS} `{name}`", expected, "none")
        dtype = DTYPES.get(array.dtype.str[1:], str(array.dtype))
        fits = array.ndim == len(shape) and all(
            size in (None, found) for size, found in zip(shape, array.shape, strict=True)
        )
        if dtype not in dtypes.split() or not fits:
            found = f"{dtype} and {' x '.join(map(str, array.shape)) or 'one'}"
            raise self.refused(name, expected, found)
        return array

    def numbers(
        self,
        name: str,
        dtypes: str,
        shape: tuple[int | None, ...],
        low: float = -LARGEST,
        high: float = LARGEST,
    ) -> Array:
        """Return a tensor of finite numbers from `low` to `high`, both included."""
        array = self.tensor(name, dtypes, shape)
        if not _within(array, low, high):
            with np.errstate(invalid="ignore"):  # a signalling NaN
                wide = array.astype(np.float64)  # the limits may be beyond the array's own type
            wrong = int(np.flatnonzero(~((wide >= low) & (wide <= high)))[0])
            found = f"{array.ravel()[wrong]} at {place(array, wrong)}"
            raise self.refused(name, f"numbers from {low:g} to {high:g}", found)
        return array

    def offsets(self, name: str, count: int, total: int) -> Array:
        """Return count + 1 offsets that increase from 0 to `total`."""
        array = self.numbers(name, "I32", (count + 1,), 0, total)
        steps = np.flatnonzero(np.diff(array) <= 0)
        if array[0] != 0 or array[-1] != total or len(steps):
            found = f"{array[0]} to {array[-1]}"
            if len(steps):
                found = f"{array[steps[0] + 1]} after {array[steps[0]]} at {steps[0] + 1}"
            raise self.refused(name, f"offsets that increase from 0 to {total}", found)
        return array

    # What grammar.json says -----------------------------------------------------------------------

    def field(self, name: str) -> Any:
        """Return what a path of keys (`rescoring.trust`) leads to."""
        value: Any = self.described
        for key in name.split("."):
            if not isinstance(value, Mapping) or key not in value:
                raise self.refused(name, "this field", "none")
            value = value[key]
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        value = self.field(name)
        if type(value) is not int or not low <= value <= high:
            raise self.refused(name, f"a whole number from {low} to {high}", shown(value))
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
        value = self.field(name)
        if not is_number(value) or not low <= value <= high:
            raise self.refused(name, f"a number from {low:g} to {high:g}", shown(value))
        return float(value)

    def choice(self, name: str, values: Sequence[str]) -> str:
        """Return one of these texts."""
        value = self.field(name)
        if not isinstance(value, str) or value not in values:
            raise self.refused(name, f"one of {join(values)}", shown(value))
        return value

    def strings(self, name: str, least: int = 0) -> tuple[str, ...]:
        """Return a list of at least so many texts, all different."""
        value = self.field(name)
        if not isinstance(value, list | tuple) or not set(map(type, value)) <= {str}:
            raise self.refused(name, "a list of texts", shown(value))
        if len(value) < least or len(set(value)) < len(value):
            found = f"{len(value)}, {len(set(value))} of them different"
            raise self.refused(name, f"at least {least} texts, all different", found)
        return tuple(value)

    def number_list(self, name: str, *, least: int = 0) -> list[float]:
        """Return a list of at least so many finite numbers."""
        value = self.field(name)
        if not is_number_list(value) or len(value) < least:
            raise self.refused(name, f"a list of at least {least} numbers", shown(value))
        return [float(one) for one in value]

    def number_lists(self, name: str, *, least: int) -> list[list[float]]:
        """Return a list of at least so many lists of finite numbers."""
        value = self.field(name)
        if not _are_number_lists(value, least):
            raise self.refused(name, f"at least {least} lists of numbers", shown(value))
        return [[float(one) for one in row] for row in value]

    def named_number_lists(self, name: str, *, least: int) -> None:
        """Check that there are at least so many lists of finite numbers under every name."""
        value = self.field(name)
        if not isinstance(value, Mapping):
            raise self.refused(name, "lists of numbers by name", shown(value))
        for key, lists in value.items():
            if not _are_number_lists(lists, least):
                expected = f"at least {least} lists of numbers for `{key}`"
                raise self.refused(name, expected, shown(lists))


def _are_number_lists(value: object, least: int) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return len(value) >= least and all(map(is_number_list, value))


def refused(where: str, expected: str, found: object) -> StoreError:
    """Return the error about a piece of a model."""
    return StoreError(f"{where}: expected {expected}, found {found}: {CURE}")


def _within(array: Array, low: float, high: float) -> bool:
    """Return True if all numbers are from `low` to `high`. NaN never is."""
    if array.dtype == np.float16 and low == -high:
        # Comparing half-precision numbers takes eight times as long as comparing their bits.
        sizes = array.view(np.uint16) & np.uint16(0x7FFF)
        limit = np.array(min(high, _LARGEST_HALF), np.float16).view(np.uint16)
        return bool(sizes.max(initial=0) <= limit)
    return not array.size or (float(array.min()) >= low and float(array.max()) <= high)


def place(array: Array, at: int) -> str:
    """Return where a number stands, given its place in the array's memory."""
    return ", ".join(str(index) for index in np.unravel_index(at, array.shape))


def shown(value: object) -> str:
    """Return a value for a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def is_number(value: object) -> bool:
    """Return True for a finite number, which neither true nor false is."""
    if type(value) is int:
        return abs(value) < 1 << 62
    return type(value) is float and isfinite(value)


def is_number_list(value: object) -> bool:
    """Return True for a list of finite numbers."""
    return isinstance(value, list | tuple) and all(map(is_number, value))


def check_facts(stored: Stored) -> None:
    """Refuse facts that no answer can contain: numbers without end, and nesting without end."""
    for level, value in _below(stored.manifest["facts"], 1):
        if level > _DEEPEST:
            expected = f"facts of at most {_DEEPEST} levels"
            raise refused(f"{stored.reference.folder}/manifest.json", expected, "more")
        if isinstance(value, float) and not isfinite(value):
            where = f"{stored.reference.folder}/manifest.json"
            raise refused(where, "finite numbers in `facts`", value)


def _below(value: object, level: int) -> Iterator[tuple[int, object]]:
    """Yield a value and all that it holds, with levels; not what is below the deepest allowed."""
    yield level, value
    if level <= _DEEPEST and isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, dict | list | float):
                yield from _below(one, level + 1)
