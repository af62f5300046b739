"""Learn the hidden part in small batches (AdaGrad, with a rate that falls along a line).

The loss is that of the sparse part. In every batch a share of the hidden units is left
out (dropout, Srivastava et al. 2014): without that, more passes than two overfit.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.features import PAD, length_bucket
from lpcfg.engine.rescoring.hidden import (
    BESIDE,
    EDGE_END,
    EDGE_START,
    END,
    HEAD,
    LEFT_HEAD,
    LENGTHS,
    POSITIONS,
    RIGHT_HEAD,
    SPLIT,
    START,
    Hidden,
    add_to,
    gathered,
    hidden_scores,
    sum_into,
)
from lpcfg.engine.rescoring.layer import Vectors, by_word
from lpcfg.engine.rescoring.names import Rows
from lpcfg.grammar.tables import Bools, Grammar, Ints, Longs, Singles, frozen
from lpcfg.train.rescoring.examples import LEAST_GRADIENT, ChartExamples, Gradient
from lpcfg.train.stages import Stage

_BESIDE = frozen(np.array(BESIDE, np.int64))


@dataclass(frozen=True)
class HiddenSettings:
    """How the hidden part is learned: its width H, passes, sentences between two steps, the share
    of units left out of a batch, AdaGrad's first rate and the share of it that the last step has;
    `start` is the sum of squares before the first step, `tables` and `outputs` the spread of
    random beginnings."""

    width: int = 128
    passes: int = 4
    batch: int = 4
    drop: float = 0.3
    rate: float = 0.02
    last: float = 0.2
    start: float = 0.01
    tables: float = 0.05
    outputs: float = 0.03


class Moved(NamedTuple):
    """The rows of the tables of `Hidden` that have a gradient."""

    word: Bools
    tag: Bools
    suffix: Bools
    length: Bools
    label: Bools
    rule: Bools


Out = tuple[Hidden, Moved]
"""Gradients of tables, and which rows have one."""
_Shapes = tuple[tuple[int, ...], ...]


class _State:
    """Tables on their way, their gradients, their sums of squares, and which rows have moved.

    `thinned` are the tables without the weights of units that are left out for now.
    """

    def __init__(self, shapes: _Shapes, settings: HiddenSettings, rng: np.random.Generator) -> None:
        one, out = settings.tables, settings.outputs
        spreads = (one, one / 2, one / 10, one, out, out)
        self.tables = Hidden(
            *(
                (rng.standard_normal(shape) * spread).astype(np.float32)
                for shape, spread in zip(shapes, spreads, strict=True)
            )
        )
        self.tables.label[-1] = self.tables.rule[-1] = 0.0  # of unknown names
        self.gradient = Hidden(*(np.zeros_like(table) for table in self.tables))
        self._squares = [np.full_like(table, settings.start) for table in self.tables]
        self.moved = Moved(*(np.zeros(len(table), np.bool_) for table in self.tables))
        self._drop, self._rng = settings.drop, rng
        self._leave_out()

    def _leave_out(self) -> None:
        """Choose units to leave out, and let the others weigh more, as all will in the end."""
        label, rule, stay = self.tables.label, self.tables.rule, 1 - self._drop
        chosen = np.less(self._rng.random(label.shape[1]), stay)
        self._unit: Singles = chosen.astype(np.float32) / np.float32(stay)
        self.thinned = self.tables._replace(label=label * self._unit, rule=rule * self._unit)

    def step(self, rate: float) -> None:
        """Follow the gradient, which is zero afterwards, and leave out other units."""
        self.gradient.label[...] *= self._unit
        self.gradient.rule[...] *= self._unit
        self.moved.word[:] = True
        self.moved.length[:] = True
        flat = zip(self.tables, self.gradient, self._squares, self.moved, strict=True)
        for table, gradient, squares, moved in flat:
            rows = len(moved)
            w, g, q = (one.reshape(rows, -1) for one in (table, gradient, squares))
            adagrad(w, g, q, moved, np.float32(rate))
        self._leave_out()


class Learner:
    """Learns tables from examples, for words with vectors."""

    def __init__(
        self, examples: ChartExamples, vectors: Vectors, rows: Rows, grammar: Grammar, suffixes: int
    ) -> None:
        self._examples, self._vectors = examples, vectors
        self._tag_row = rows.tags_of(grammar)
        self._rows = rows.labels_of(grammar), rows.rules_of(grammar)
        self._sizes = (
            *(vectors.table.shape[1], len(rows.tags) + 1, suffixes + 1),
            *(len(rows.labels) + 1, len(rows.rules) + 1),
        )

    def learn(self, settings: HiddenSettings, *, seed: int, stage: Stage) -> Hidden:
        """Return the tables of the hidden part."""
        rng = np.random.default_rng(seed)
        state = _State(self._shapes(settings.width), settings, rng)
        steps, total = 0, settings.passes * self._examples.visits
        for _ in range(settings.passes):
            for at in self._examples.order(rng):
                self._add(at, state)
                stage.advance()
                steps += 1
                if steps % settings.batch == 0 or steps == total:
                    state.step(settings.rate * (1 - (1 - settings.last) * steps / total))
        return state.tables

    def _shapes(self, width: int) -> "_Shapes":
        vector, tags, suffixes, labels, rules = self._sizes
        wide = POSITIONS * width
        return (
            (vector, wide),
            (tags, wide),
            (suffixes, wide),
            (3, LENGTHS, width),
            (labels, width),
            (rules, width),
        )

    def _add(self, at: int, state: "_State") -> None:
        """Add the gradient of a sentence."""
        record, tables = self._examples.charts[at], state.thinned
        facts, tags = self._examples.facts[:, record.words], self._tag_row[record.view.preterminal]
        vectors = self._vectors.take(facts[5])
        n, width = len(tags), tables.label.shape[1]
        sums = gathered(by_word(tables, vectors, tags, facts[4]), n, width)
        head = record.view.head
        item, edge = hidden_scores(record.chart, head, sums, tables, self._rows)
        gradient = self._examples.gradient(record, item, edge)
        out = state.gradient, state.moved
        below = sums_gradient(record.chart, head, sums, tables, self._rows, gradient, out)
        inner = scattered(below, n, width, out)
        state.gradient.word[...] += vectors.T @ inner
        add_rows(state.gradient.tag, tags, inner, state.moved.tag)
        add_rows(state.gradient.suffix, facts[4], inner, state.moved.suffix)


@njit(cache=True, nogil=True)
def scattered(sums: Singles, n: int, width: int, out: Out) -> Singles:
    """Compute the gradient of words' rows, (n, POSITIONS · H), from that of the sums of rows.
    Places beside the sentence have rows of their own.
    """
    gradient, moved = out
    result = np.zeros((n, len(_BESIDE) * width), np.float32)
    tag, suffix = gradient.tag[len(gradient.tag) - 1], gradient.suffix[0]
    moved.tag[len(gradient.tag) - 1] = True
    moved.suffix[0] = True
    for p in range(len(_BESIDE)):
        which, offset = _BESIDE[p]
        low, high = p * width, (p + 1) * width
        for at in range(n + 1):
            place = at + offset
            if 0 <= place < n:
                add_to(result[place, low:high], sums[which, at])
            elif -PAD <= place < n + PAD:
                add_to(tag[low:high], sums[which, at])
                add_to(suffix[low:high], sums[which, at])
    return result


@njit(cache=True, nogil=True)
def _backward(
    h: Singles, gradient: np.float32, weight: Singles, of_weight: Singles, below: Singles
) -> None:
    """Add gradient · relu(h) to of_weight, and set below to gradient · weight where h > 0."""
    zero = np.float32(0.0)
    for x in range(len(h)):
        positive = h[x] > zero
        of_weight[x] += gradient * h[x] if positive else zero
        below[x] = gradient * weight[x] if positive else zero


@njit(cache=True, nogil=True)
def sums_gradient(
    chart: Chart,
    head: Ints,
    sums: Singles,
    hidden: Hidden,
    rows: tuple[Ints, Ints],
    gradient: Gradient,
    out: Out,
) -> Singles:
    """Compute the gradient of the sums of rows, and add that of the tables label, rule and
    length.
    """
    of_symbol, of_rule = rows
    of_item, of_edge = gradient
    tables, moved = out
    width = sums.shape[2]
    back = np.zeros_like(sums)
    h, below = np.empty(width, np.float32), np.empty(width, np.float32)
    for t in range(len(chart.symbol)):
        i, k = chart.start[t], chart.end[t]
        if abs(of_item[t]) > LEAST_GRADIENT:
            length, label = length_bucket(k - i), of_symbol[chart.symbol[t]]
            sum_into(h, sums[START, i], sums[END, k], hidden.length[0, length])
            add_to(h, sums[HEAD, head[t]])
            _backward(h, np.float32(of_item[t]), hidden.label[label], tables.label[label], below)
            moved.label[label] = True
            add_to(back[START, i], below)
            add_to(back[END, k], below)
            add_to(back[HEAD, head[t]], below)
            add_to(tables.length[0, length], below)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if abs(of_edge[e]) <= LEAST_GRADIENT:
                continue
            left, right, rule = chart.left[e], chart.right[e], of_rule[chart.rule[e]]
            j, one, other = chart.end[left], head[left], head[right]
            first, second = length_bucket(j - i), length_bucket(k - j)
            sum_into(h, sums[EDGE_START, i], sums[EDGE_END, k], sums[SPLIT, j])
            add_to(h, hidden.length[1, first])
            add_to(h, hidden.length[2, second])
            add_to(h, sums[LEFT_HEAD, one])
            add_to(h, sums[RIGHT_HEAD, other])
            _backward(h, np.float32(of_edge[e]), hidden.rule[rule], tables.rule[rule], below)
            moved.rule[rule] = True
            add_to(back[EDGE_START, i], below)
            add_to(back[EDGE_END, k], below)
            add_to(back[SPLIT, j], below)
            add_to(back[LEFT_HEAD, one], below)
            add_to(back[RIGHT_HEAD, other], below)
            add_to(tables.length[1, first], below)
            add_to(tables.length[2, second], below)
    return back


@njit(cache=True, nogil=True)
def add_rows(table: Singles, rows: Ints | Longs, gradient: Singles, moved: Bools) -> None:
    """Add to these rows, one by one."""
    for at in range(len(rows)):
        add_to(table[rows[at]], gradient[at])
        moved[rows[at]] = True


@njit(cache=True, nogil=True)
def adagrad(
    table: Singles, gradient: Singles, squares: Singles, moved: Bools, rate: np.float32
) -> None:
    """Take one step upwards in the rows that moved, and set their gradient to zero."""
    zero = np.float32(0.0)
    for r in range(len(table)):
        if not moved[r]:
            continue
        moved[r] = False
        g, q, w = gradient[r], squares[r], table[r]
        for h in range(table.shape[1]):
            q[h] += g[h] * g[h]
            w[h] += rate * g[h] / np.sqrt(q[h])
            g[h] = zero
