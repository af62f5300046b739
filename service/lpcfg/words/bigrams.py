"""Count how often which word follows which: sparse, in sorted runs, merged and kept on disk."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lpcfg.base.jit import compiled
from lpcfg.words.corpus import Ints, Longs

Floats = NDArray[Any]

RUN = 1 << 22
"""Pairs sorted at a time, and entries merged at a time: about 100 MB each."""


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix by rows (CSR); its arrays may lie on disk."""

    start: Longs
    column: Ints
    value: Floats
    """float32"""
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.start) - 1, self.columns

    def sums(self) -> NDArray[np.float64]:
        """Return the sum of every row."""
        return _row_sums(self.start, self.value)

    def times(self, dense: Floats, threads: int, *, roots: bool = False) -> Floats:
        """Multiply this matrix, or its square roots, by a dense one.

        Rows are shared out among threads by their entries.
        """
        out = np.empty((self.shape[0], dense.shape[1]), dense.dtype)
        shares = np.searchsorted(self.start, np.linspace(0, self.start[-1], threads + 1)[1:-1])
        cuts = [0, *shares.tolist(), self.shape[0]]
        with ThreadPoolExecutor(threads) as pool:
            parts = [
                pool.submit(_multiply, self.start, self.column, self.value, roots, dense, out, *cut)
                for cut in pairwise(cuts)
            ]
            for part in parts:
                part.result()
        return out


@compiled()
def _multiply(
    start: Longs,
    column: Ints,
    value: Floats,
    roots: bool,
    dense: Floats,
    out: Floats,
    first: int,
    last: int,
) -> None:
    width = dense.shape[1]
    for row in range(first, last):
        for k in range(width):
            out[row, k] = 0.0
        for entry in range(start[row], start[row + 1]):
            factor = np.sqrt(value[entry]) if roots else value[entry]
            other = column[entry]
            for k in range(width):
                out[row, k] += factor * dense[other, k]


@compiled()
def _row_sums(start: Longs, value: Floats) -> NDArray[np.float64]:
    sums = np.zeros(len(start) - 1)
    for row in range(len(sums)):
        for entry in range(start[row], start[row + 1]):
            sums[row] += value[entry]
    return sums


class PairCounter:
    """Counts pairs (row, column), added in any amount and merged by rows, in bounded memory."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        self._runs: list[tuple[Longs, Ints]] = []
        self._waiting: list[Longs] = []
        self._size = 0

    def add(self, row: Ints, column: Ints) -> None:
        """Count pairs."""
        self._waiting.append(row.astype(np.int64) * self._shape[1] + column)
        self._size += len(row)
        if self._size >= RUN:
            self._finish_run()

    def _finish_run(self) -> None:
        keys = np.concatenate([np.zeros(0, np.int64), *self._waiting])
        self._waiting, self._size = [], 0
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(first, append=len(keys)).astype(np.int32)
        self._runs.append((self._on_disk(keys[first]), self._on_disk(counts)))

    def _on_disk(self, values: NDArray[Any]) -> Any:
        """Write the values into a file, and return them from there."""
        with tempfile.TemporaryFile() as file:
            values.tofile(file)
            return _mapped(file, values.dtype.type)

    def merged(self) -> SparseRows:
        """Return all counts, as float32."""
        self._finish_run()
        rows, columns = self._shape
        bounds = np.arange(rows + 1, dtype=np.int64) * columns
        starts = np.array([np.searchsorted(keys, bounds) for keys, _ in self._runs])
        start = np.zeros(rows + 1, np.int64)
        with tempfile.TemporaryFile() as column, tempfile.TemporaryFile() as value:
            for first, last in _ranges(starts.sum(axis=0)):
                part = self._merged_rows(starts, first, last)
                start[first + 1 : last + 1] = start[first] + part.indptr[1:]
                part.indices.astype(np.int32).tofile(column)
                part.data.astype(np.float32).tofile(value)
            mapped = _mapped(column, np.int32), _mapped(value, np.float32)
        return SparseRows(start, *mapped, columns)

    def _merged_rows(self, starts: Longs, first: int, last: int) -> sparse.csr_matrix:
        """Return the counts of rows first to last - 1, of all runs."""
        columns = self._shape[1]
        parts = [
            (keys[start[first] : start[last]], counts[start[first] : start[last]])
            for (keys, counts), start in zip(self._runs, starts, strict=True)
        ]
        keys = np.concatenate([part[0] for part in parts]) - first * columns
        counts = np.concatenate([part[1] for part in parts])
        shape = (last - first, columns)
        return sparse.coo_matrix((counts, (keys // columns, keys % columns)), shape).tocsr()


def _ranges(start: Longs) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges of about `RUN` entries, at least a row each; start counts entries."""
    first, rows = 0, len(start) - 1
    while first < rows:
        last = int(np.searchsorted(start, start[first] + RUN, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last


def _mapped(file: IO[bytes], kind: type[np.generic]) -> Any:
    """Return the values in a file without a name, in memory only while they are used.

    The mapping outlives the file object; when nobody uses it any more, or the process is killed,
    the disk has its space back.
    """
    file.flush()
    empty = not file.tell()  # which cannot be mapped
    return np.zeros(0, kind) if empty else np.memmap(file, kind, "r+")
