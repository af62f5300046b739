"""Learn the weights of hashed features, one sentence at a time.

The loss of a sentence is −log p(target | x) with a softmax margin: while learning, every item
outside the target scores MARGIN more. Steps follow AdaGrad (Duchi et al. 2011); the weights are
the average of those after every pass from the second on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.jit import compiled
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.features import (
    CodedText,
    edge_slots,
    item_slots,
    new_buffers,
    sparse_scores,
)
from lpcfg.engine.rescoring.names import Names
from lpcfg.grammar.tables import Longs, Singles
from lpcfg.training.rescoring.examples import LEAST_GRADIENT, ChartExamples, Gradient
from lpcfg.training.rescoring.targets import Target
from lpcfg.training.stages import Stage

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class SparseSettings:
    """How the sparse part is learned: 2^bits weights, passes, AdaGrad's rate, L2; features seen in
    targets less than `least` times weigh nothing, or what they weighed before."""

    bits: int = 22
    passes: int = 3
    rate: float = 0.05
    decay: float = 0.2
    least: int = 2


class SparseState(NamedTuple):
    """The weights of the sparse part while they are learned.

    table[s] = (weight, sum of squares); total is the sum of the weights after `passes` passes.
    """

    table: Singles
    total: Singles
    passes: int

    @property
    def weight(self) -> Singles:
        """The average of the weights after these passes."""
        return self.total / np.float32(self.passes)


def learn(
    examples: ChartExamples,
    settings: SparseSettings,
    *,
    seed: int,
    stage: Stage,
    before: SparseState | None = None,
) -> SparseState:
    """Learn the weights of the sparse part, or go on for one pass from where learning was before.

    Their average is that after every pass from the second on.
    """
    size = 1 << settings.bits
    if before is None:
        table, total, done = np.zeros((size, 2), np.float32), np.zeros(size, np.float32), 0
        passes, left_out = settings.passes, 1 if settings.passes > 1 else 0
    else:
        table, total, done = before.table.copy(), before.total.copy(), before.passes
        passes, left_out = 1, 0
    learned = continued(examples, settings, table, passes, seed=seed, advance=stage.advance)
    for number, weight in enumerate(learned):
        if number >= left_out:
            total += weight
            done += 1
    return SparseState(table, total, done)


def continued(
    examples: ChartExamples,
    settings: SparseSettings,
    table: Singles,
    passes: int,
    *,
    seed: int,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[Singles]:
    """Yield the weights after every pass, going on from table[s] = (weight, sum of squares), which
    changes.
    """
    names = examples.names
    counts = np.zeros(len(table), np.uint8)
    for number in np.flatnonzero(examples.times).tolist():
        record, coded = examples.sparse(number)
        count_slots(record.chart, (coded, record.view.head), names, record.target, counts)
    chosen = (counts >= settings.least) | (table[:, 0] != 0)
    np.maximum(table[:, 1], chosen, out=table[:, 1])
    step = settings.rate, settings.decay
    rng = np.random.default_rng(seed)
    for _ in range(passes):
        for number in examples.order(rng):
            _learn_from(examples, number, table, step)
            advance()
        yield table[:, 0]


def loss(examples: ChartExamples, weight: Singles, chosen: Sequence[int]) -> float:
    """Compute the mean −log p(target | x) of the chosen charts."""
    total = 0.0
    for number in chosen:
        record, coded = examples.sparse(number)
        item, edge = sparse_scores(record.chart, (coded, record.view.head), examples.names, weight)
        total -= examples.log_share(record, item, edge)
    return total / max(len(chosen), 1)


def _learn_from(
    examples: ChartExamples, number: int, table: Singles, step: tuple[float, float]
) -> None:
    record, coded = examples.sparse(number)
    text = coded, record.view.head
    item, edge = sparse_scores(record.chart, text, examples.names, table[:, 0])
    gradient = examples.gradient(record, item, edge)
    update(record.chart, text, examples.names, gradient, table, step)


@compiled()
def count_slots(chart: Chart, text: CodedText, names: Names, target: Target, counts: Bytes) -> None:
    """Count, up to 255, the features of the target."""
    mask, buffers = len(counts) - 1, new_buffers()
    for t in range(len(chart.symbol)):
        if not target.item[t]:
            continue
        _count(buffers[1], item_slots(chart, t, text, names, buffers, mask, True), counts)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if target.edge[e]:
                _count(buffers[1], edge_slots(chart, t, e, text, names, buffers, mask), counts)


@compiled(helper=True)
def _count(slots: Longs, many: int, counts: Bytes) -> None:
    for f in range(many):
        if counts[slots[f]] < 255:
            counts[slots[f]] += 1


@compiled()
def update(
    chart: Chart,
    text: CodedText,
    names: Names,
    gradient: Gradient,
    table: Singles,
    step: tuple[float, float],
) -> None:
    """Follow the gradient of items' and of edges' scores; table[s] = (weight, sum of squares)."""
    mask, buffers = len(table) - 1, new_buffers()
    of_item, of_edge = gradient
    for t in range(len(chart.symbol)):
        if abs(of_item[t]) > LEAST_GRADIENT:
            count = item_slots(chart, t, text, names, buffers, mask, True)
            _step(buffers[1], count, of_item[t], table, step)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if abs(of_edge[e]) > LEAST_GRADIENT:
                count = edge_slots(chart, t, e, text, names, buffers, mask)
                _step(buffers[1], count, of_edge[e], table, step)


@compiled(helper=True)
def _step(
    slots: Longs, count: int, gradient: float, table: Singles, step: tuple[float, float]
) -> None:
    """Take one step upwards in these slots. Slots without a sum of squares are not selected, so
    they stay.
    """
    rate, decay = np.float32(step[0]), np.float32(step[1])
    for f in range(count):
        s = slots[f]
        if table[s, 1] > 0.0:
            g = gradient - decay * table[s, 0]
            table[s, 1] += g * g
            table[s, 0] += rate * g / np.sqrt(table[s, 1])
