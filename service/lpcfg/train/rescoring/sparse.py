"""Learn the weights of hashed features, one sentence at a time.

The loss of a sentence is −log p(target | x) with a softmax margin: while learning, every item
outside the target scores MARGIN more. Steps follow AdaGrad (Duchi et al. 2011); the weights are
the average of those after every pass from the second on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpcfg.compiled import compiled
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.features import (
    Text,
    edge_slots,
    item_slots,
    room_for_slots,
    sparse_scores,
)
from lpcfg.engine.rescoring.names import Names
from lpcfg.grammar.tables import Longs, Singles
from lpcfg.train.rescoring.examples import LEAST_GRADIENT, ChartExamples, Gradient
from lpcfg.train.rescoring.targets import Target
from lpcfg.train.stages import Stage

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


def learn(examples: ChartExamples, settings: SparseSettings, *, seed: int, stage: Stage) -> Singles:
    """Return the weights of the sparse part: the average after every pass from the second on."""
    size = 1 << settings.bits
    total, passes = np.zeros(size, np.float32), 0
    none, many = np.zeros(size, np.float32), settings.passes
    learned = continued(examples, settings, none, many, seed=seed, advance=stage.advance)
    for number, weight in enumerate(learned):
        if number > 0 or many == 1:
            total += weight
            passes += 1
    return total / np.float32(passes)


def continued(
    examples: ChartExamples,
    settings: SparseSettings,
    weight: Singles,
    passes: int,
    *,
    seed: int,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[Singles]:
    """Yield the weights after every pass, going on from these."""
    names = examples.names
    counts = np.zeros(len(weight), np.uint8)
    for at in np.flatnonzero(examples.times).tolist():
        record, coded = examples.sparse(at)
        count_slots(record.chart, (coded, record.view.head), names, record.target, counts)
    table = np.stack([weight, (counts >= settings.least) | (weight != 0)], 1)
    table = table.astype(np.float32)
    step = settings.rate, settings.decay
    rng = np.random.default_rng(seed)
    for _ in range(passes):
        for at in examples.order(rng):
            _learn_from(examples, at, table, step)
            advance()
        yield table[:, 0]


def loss(examples: ChartExamples, weight: Singles, chosen: Sequence[int]) -> float:
    """Compute the mean −log p(target | x) of the chosen charts."""
    total = 0.0
    for at in chosen:
        record, coded = examples.sparse(at)
        item, edge = sparse_scores(record.chart, (coded, record.view.head), examples.names, weight)
        total -= examples.log_share(record, item, edge)
    return total / max(len(chosen), 1)


def _learn_from(
    examples: ChartExamples, at: int, table: Singles, step: tuple[float, float]
) -> None:
    record, coded = examples.sparse(at)
    text = coded, record.view.head
    item, edge = sparse_scores(record.chart, text, examples.names, table[:, 0])
    gradient = examples.gradient(record, item, edge)
    update(record.chart, text, examples.names, gradient, table, step)


@compiled()
def count_slots(chart: Chart, text: Text, names: Names, target: Target, counts: Bytes) -> None:
    """Count, up to 255, the features of the target."""
    mask, room = len(counts) - 1, room_for_slots()
    for t in range(len(chart.symbol)):
        if not target.item[t]:
            continue
        _count(room[1], item_slots(chart, t, text, names, room, mask, True), counts)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if target.edge[e]:
                _count(room[1], edge_slots(chart, t, e, text, names, room, mask), counts)


@compiled()
def _count(slots: Longs, many: int, counts: Bytes) -> None:
    for f in range(many):
        if counts[slots[f]] < 255:
            counts[slots[f]] += 1


@compiled()
def update(
    chart: Chart,
    text: Text,
    names: Names,
    gradient: Gradient,
    table: Singles,
    step: tuple[float, float],
) -> None:
    """Follow the gradient of items' and of edges' scores; table[s] = (weight, sum of squares)."""
    mask, room = len(table) - 1, room_for_slots()
    of_item, of_edge = gradient
    for t in range(len(chart.symbol)):
        if abs(of_item[t]) > LEAST_GRADIENT:
            count = item_slots(chart, t, text, names, room, mask, True)
            _step(room[1], count, of_item[t], table, step)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if abs(of_edge[e]) > LEAST_GRADIENT:
                count = edge_slots(chart, t, e, text, names, room, mask)
                _step(room[1], count, of_edge[e], table, step)


@compiled()
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
