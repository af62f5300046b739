"""Spill charts to files and read them back, so that memory does not grow with the treebank.

A record is a row of 4-byte numbers, read back one at a time, in any order.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.chart import View
from lpcfg.grammar.tables import Ints, Longs
from lpcfg.training.rescoring.targets import Target

_NONE, _NO_INTS = np.empty(0), np.empty(0, np.int32)


class Record(NamedTuple):
    """One sentence to learn from: the layer's view of its chart, its target, and its words'
    numbers.
    """

    chart: Chart
    view: View
    target: Target
    words: Ints


class Spill:
    """A file of records that is still being written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._path = path
        self._sizes: list[tuple[int, int, int]] = []
        self._trees: list[int] = []

    def add(self, record: Record, tree: int) -> None:
        """Write the record of a tree behind the others."""
        chart, seen, target = record.chart, record.view, record.target
        parts = (
            *(chart.symbol, chart.start, chart.end, seen.head, target.item, seen.root.view("i4")),
            *(chart.edge_start, chart.rule, chart.left, chart.right, seen.edge.view("i4")),
            *(target.edge, record.words, seen.preterminal),
        )
        self._file.write(np.concatenate(parts, dtype=np.int32, casting="unsafe").tobytes())
        self._sizes.append((len(chart.symbol), len(chart.rule), len(record.words)))
        self._trees.append(tree)

    def close(self) -> "Spilled":
        """End the file, and say what is in it."""
        self._file.close()
        sizes = np.array(self._sizes, np.int64).reshape(-1, 3)
        return Spilled(self._path, sizes, np.array(self._trees, np.int64))


class Spilled(NamedTuple):
    """A finished file of records, with the numbers of items, edges and words, and the tree, of each
    record.
    """

    path: Path
    sizes: Longs
    trees: Longs


class Charts(Sequence[Record]):
    """The records of files, one after the other."""

    def __init__(self, parts: Sequence[Spilled]) -> None:
        self._files = [os.open(part.path, os.O_RDONLY) for part in parts]
        self._file_of = np.repeat(np.arange(len(parts)), [len(part.sizes) for part in parts])
        self._sizes = np.concatenate([part.sizes for part in parts])
        self.trees = np.concatenate([part.trees for part in parts])
        self._begins = np.concatenate([_begins(part.sizes) for part in parts])

    def __enter__(self) -> "Charts":
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files:
            os.close(file)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, number: int) -> Record:  # type: ignore[override]
        items, edges, words = self._sizes[number].tolist()
        data = bytearray(4 * int(_length(self._sizes[number])))
        os.preadv(self._files[self._file_of[number]], [data], 4 * int(self._begins[number]))
        lengths = [*[items] * 6, items + 1, *[edges] * 5, words, words]
        bounds = np.cumsum([0, *lengths]).tolist()
        row = np.frombuffer(data, np.int32)
        parts = [row[bounds[k] : bounds[k + 1]] for k in range(len(lengths))]
        symbol, start, end, head, item, root, edge_start = parts[:7]
        rule, left, right, edge, chosen, spoken, preterminal = parts[7:]
        chart = Chart(
            *(symbol, start, end, _NO_INTS, _NONE, edge_start.astype(np.int64)),
            *(rule, left, right, _NONE),
        )
        seen = View(head, preterminal, edge.view(np.float32), root.view(np.float32))
        return Record(chart, seen, Target(item != 0, chosen != 0), spoken)


def _length(sizes: Longs) -> Longs:
    """Count how many numbers a record takes."""
    length: Longs = 7 * sizes[..., 0] + 1 + 5 * sizes[..., 1] + 2 * sizes[..., 2]
    return length


def _begins(sizes: Longs) -> Longs:
    lengths = _length(sizes)
    begins: Longs = np.cumsum(lengths) - lengths
    return begins
