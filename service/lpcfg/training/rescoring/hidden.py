"""Learn the hidden part in small batches (AdaGrad, with a rate that falls along a line).

The loss is that of the sparse part. In every batch a share of the hidden units is left
out (dropout, Srivastava et al. 2014): without that, more passes than two overfit. Both halves of a
batch add to a gradient of their own, side by side if there are workers, and the step follows the
sum: numbers are the same with and without.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring.features import PAD, length_bucket
from lpcfg.engine.rescoring.hidden import (
    EDGE_END,
    EDGE_START,
    END,
    HEAD,
    LEFT_HEAD,
    LENGTHS,
    POSITION_OFFSETS,
    POSITIONS,
    RIGHT_HEAD,
    SPLIT,
    START,
    Hidden,
    add_to,
    gather,
    hidden_scores,
    sum_into,
)
from lpcfg.engine.rescoring.layer import Layer, WordVectors
from lpcfg.engine.rescoring.names import RowNames
from lpcfg.grammar.tables import Bools, Grammar, Ints, Longs, Singles, frozen
from lpcfg.training.rescoring.examples import (
    LEAST_GRADIENT,
    ChartExamples,
    Gradient,
    Task,
    gradient_of,
)
from lpcfg.training.rescoring.inherit import inherit
from lpcfg.training.stages import Stage

_OFFSETS = frozen(np.array(POSITION_OFFSETS, np.int64))
_OFF = np.float32(-1e9)
"""Added to the sums of units that are left out, so that none of them is above zero."""


@dataclass(frozen=True)
class HiddenSettings:
    """How the hidden part is learned.

    width           H, the number of hidden units
    passes          over the charts
    batch           sentences between two steps
    drop            the share of units that a batch leaves out
    rates           AdaGrad's first and last
    going_on        the same for a pass that goes on from an earlier state
    start           the sum of squares before the first step
    tables          the spread of random numbers that tables begin with
    outputs         the same for the output tables: labels and rules
    """

    width: int = 128
    passes: int = 4
    batch: int = 4
    drop: float = 0.3
    rates: tuple[float, float] = (0.02, 0.004)
    going_on: tuple[float, float] = (0.016, 0.002)
    start: float = 0.01
    tables: float = 0.05
    outputs: float = 0.03


class HasGradient(NamedTuple):
    """Marks the rows of the tables of `Hidden` that have a gradient."""

    word: Bools
    tag: Bools
    suffix: Bools
    length: Bools
    label: Bools
    rule: Bools


Inputs = tuple[Singles, Ints, Longs]
"""Eigenwords of a sentence's words, and their rows of tags and suffixes."""
TablesGradient = tuple[Hidden, HasGradient]
"""A gradient of tables, and which rows have one."""
Dropout = tuple[Singles, np.float32]
"""The mask added to the sums of every unit, and the factor of those that stay."""
_Shapes = tuple[tuple[int, ...], ...]


class HiddenState:
    """Tables while they are learned, their sums of squares, and the gradients of both halves of a
    batch.
    """

    def __init__(
        self, tables: Hidden, squares: Hidden, drop: float, rng: np.random.Generator
    ) -> None:
        self.tables, self._squares = tables, squares
        self.halves: tuple[TablesGradient, TablesGradient] = (
            no_gradient(tables),
            no_gradient(tables),
        )
        self._stay, self._rng = 1 - drop, rng
        self._leave_out()

    @classmethod
    def begun(cls, shapes: _Shapes, settings: HiddenSettings, rng: np.random.Generator) -> Self:
        """Begin with random tables of these shapes."""
        spread, output = settings.tables, settings.outputs
        spreads = (spread, spread / 2, spread / 10, spread, output, output)
        tables = Hidden(
            *(
                (rng.standard_normal(shape) * each).astype(np.float32)
                for shape, each in zip(shapes, spreads, strict=True)
            )
        )
        tables.label[-1] = tables.rule[-1] = 0.0  # of unknown names
        squares = Hidden(*(np.full_like(table, settings.start) for table in tables))
        return cls(tables, squares, settings.drop, rng)

    def copied(self, rng: np.random.Generator) -> Self:
        """Return a copy to go on with."""
        tables = Hidden(*(table.copy() for table in self.tables))
        squares = Hidden(*(table.copy() for table in self._squares))
        return type(self)(tables, squares, 1 - self._stay, rng)

    def _leave_out(self) -> None:
        """Choose units to leave out, and let the others weigh more, as all will in the end."""
        stays = self._rng.random(self.tables.label.shape[1]) < self._stay
        off = np.where(stays, np.float32(0), _OFF)
        self.dropout: Dropout = off, np.float32(1 / self._stay)

    def step(self, rate: float) -> None:
        """Follow the gradients, which are zero afterwards, and leave out other units."""
        adagrad(self.tables, self._squares, *self.halves, np.float32(rate))
        self._leave_out()


def no_gradient(tables: Hidden) -> TablesGradient:
    """Return a gradient of zeros."""
    marks = HasGradient(*(np.zeros(len(table), np.bool_) for table in tables))
    return Hidden(*(np.zeros_like(table) for table in tables)), marks


class HiddenLearner:
    """Learns tables from examples, for words with vectors."""

    def __init__(
        self,
        examples: ChartExamples,
        vectors: WordVectors,
        rows: RowNames,
        grammar: Grammar,
        suffixes: Sequence[str],
    ) -> None:
        self._examples = examples
        self._vectors = vectors.take(examples.facts[5])
        self._tag_row = rows.tags_of(grammar)
        self._rows = rows.labels_of(grammar), rows.rules_of(grammar)
        self._names, self._suffixes = rows, suffixes

    def learn(
        self,
        settings: HiddenSettings,
        *,
        seed: int,
        workers: int,
        stage: Stage,
        start: Layer | None = None,
        before: HiddenState | None = None,
    ) -> HiddenState:
        """Learn the tables of the hidden part.

        Args:
            settings: of the hidden part.
            seed: of random numbers.
            workers: with two or more, both halves of a batch are done side by side.
            stage: which shows progress.
            start: a layer with whose rows the tables begin.
            before: where learning goes on for one pass, instead of beginning.
        """
        rng = np.random.default_rng(seed)
        if before is None:
            passes, (first, last) = settings.passes, settings.rates
            state = HiddenState.begun(self._shapes(settings), settings, rng)
            if start is not None:
                inherit(state.tables, self._names, self._suffixes, start)
        else:
            passes, (first, last) = 1, settings.going_on
            state = before.copied(rng)
        done, total = 0, passes * self._examples.visits
        with ThreadPoolExecutor(1) as beside:
            for _ in range(passes):
                order = self._examples.order(rng)
                for first_of_batch in range(0, len(order), settings.batch):
                    batch = order[first_of_batch : first_of_batch + settings.batch]
                    waiting = beside.submit(self._add, batch[1::2], state, state.halves[1])
                    if workers == 1:
                        waiting.result()
                    self._add(batch[::2], state, state.halves[0])
                    waiting.result()
                    done += len(batch)
                    state.step(first + (last - first) * done / total)
                    stage.advance(len(batch))
        return state

    def _shapes(self, settings: HiddenSettings) -> "_Shapes":
        names, wide = self._names, POSITIONS * settings.width
        return (
            (self._vectors.shape[1], wide),
            (len(names.tags) + 1, wide),
            (len(self._suffixes) + 1, wide),
            (3, LENGTHS, settings.width),
            (len(names.labels) + 1, settings.width),
            (len(names.rules) + 1, settings.width),
        )

    def _add(self, half: Sequence[int], state: HiddenState, out: TablesGradient) -> None:
        """Add the gradient of some sentences."""
        facts, prior_weight = self._examples.facts, np.float32(self._examples.prior_weight)
        for number in half:
            record = self._examples.charts[number]
            seen, words = record.view, record.words
            inputs = self._vectors[words], self._tag_row[seen.preterminal], facts[4][words]
            task = seen, record.target, prior_weight
            add_gradient(record.chart, task, inputs, state.tables, self._rows, state.dropout, out)


@compiled()
def add_gradient(
    chart: Chart,
    task: Task,
    words: Inputs,
    tables: Hidden,
    rows: tuple[Ints, Ints],
    dropout: Dropout,
    out: TablesGradient,
) -> None:
    """Add the gradient of a sentence's log p(target | x), with the margin."""
    seen, _, _ = task
    off, more = dropout
    n, width = len(words[1]), tables.label.shape[1]
    sums = gather(rows_of(words, tables), n, width)
    for i in range(n + 1):
        add_to(sums[START, i], off)
        add_to(sums[EDGE_START, i], off)
    item, edge = hidden_scores(chart, seen.head, sums, tables, rows)
    of_item, of_edge = gradient_of(chart, task, item * more, edge * more)
    gradient = of_item * more, of_edge * more
    below = sums_gradient(chart, seen.head, sums, tables, rows, gradient, out)
    add_rows(scattered(below, n, width), words, out)


@compiled(helper=True)
def rows_of(words: Inputs, tables: Hidden) -> Singles:
    """Return what `engine.rescoring.layer.WordRows.with_tags` does."""
    vectors, tags, suffixes = words
    n, beside = len(tags), len(tables.tag) - 1
    inner = np.dot(vectors, tables.word)
    result = np.zeros((n + 2 * PAD, tables.word.shape[1]), np.float32)
    for i in range(len(result)):
        inside = PAD <= i < n + PAD
        if inside:
            add_to(result[i], inner[i - PAD])
        add_to(result[i], tables.tag[tags[i - PAD] if inside else beside])
        add_to(result[i], tables.suffix[suffixes[i - PAD] if inside else 0])
    return result


@compiled(helper=True)
def add_rows(gradient: Singles, words: Inputs, out: TablesGradient) -> None:
    """Add the gradient of words' rows to that of the tables that they are made of."""
    vectors, tags, suffixes = words
    of, marks = out
    n, beside = len(tags), len(of.tag) - 1
    of_word = np.dot(vectors.T, gradient[PAD : n + PAD])
    for x in range(len(of_word)):
        add_to(of.word[x], of_word[x])
        marks.word[x] = True
    for i in range(len(gradient)):
        inside = PAD <= i < n + PAD
        tag = tags[i - PAD] if inside else beside
        suffix = suffixes[i - PAD] if inside else 0
        add_to(of.tag[tag], gradient[i])
        add_to(of.suffix[suffix], gradient[i])
        marks.tag[tag] = True
        marks.suffix[suffix] = True


@compiled(helper=True)
def scattered(sums: Singles, n: int, width: int) -> Singles:
    """Compute the gradient of the rows of words and of what is beside them, (n + 2 PAD,
    POSITIONS · H), from that of the sums of rows.
    """
    result = np.zeros((n + 2 * PAD, len(_OFFSETS) * width), np.float32)
    for p in range(len(_OFFSETS)):
        which, offset = _OFFSETS[p]
        for i in range(n + 1):
            add_to(result[i + offset + PAD, p * width : (p + 1) * width], sums[which, i])
    return result


@compiled(helper=True)
def _backward(
    u: Singles, gradient: np.float32, weight: Singles, of_weight: Singles, below: Singles
) -> None:
    """Add gradient · relu(u) to of_weight, and set below to gradient · weight where u > 0."""
    zero = np.float32(0.0)
    for x in range(len(u)):
        positive = u[x] > zero
        of_weight[x] += gradient * u[x] if positive else zero
        below[x] = gradient * weight[x] if positive else zero


@compiled(helper=True)
def sums_gradient(
    chart: Chart,
    head: Ints,
    sums: Singles,
    hidden: Hidden,
    rows: tuple[Ints, Ints],
    gradient: Gradient,
    out: TablesGradient,
) -> Singles:
    """Compute the gradient of the sums of rows, and add that of the tables label, rule and
    length.
    """
    of_symbol, of_rule = rows
    of_item, of_edge = gradient
    tables, marks = out
    width = sums.shape[2]
    back = np.zeros_like(sums)
    u, below = np.empty(width, np.float32), np.empty(width, np.float32)
    for t in range(len(chart.symbol)):
        i, k = chart.start[t], chart.end[t]
        if abs(of_item[t]) > LEAST_GRADIENT:
            # the score of an item: u = START_i + END_k + HEAD_h + length, g = v_label · relu(u)
            length, label = length_bucket(k - i), of_symbol[chart.symbol[t]]
            sum_into(u, sums[START, i], sums[END, k], hidden.length[0, length])
            add_to(u, sums[HEAD, head[t]])
            # ∂g/∂v_label = relu(u), and ∂g/∂u = v_label where u > 0
            _backward(u, np.float32(of_item[t]), hidden.label[label], tables.label[label], below)
            marks.label[label] = marks.length[0] = True
            # u is a sum, so that each of its rows has the gradient of u
            add_to(back[START, i], below)
            add_to(back[END, k], below)
            add_to(back[HEAD, head[t]], below)
            add_to(tables.length[0, length], below)
        for e in range(chart.edge_start[t], chart.edge_start[t + 1]):
            if abs(of_edge[e]) <= LEAST_GRADIENT:
                continue
            # the score of an edge, likewise: its ends, its split j, both heads and both lengths
            left, right, rule = chart.left[e], chart.right[e], of_rule[chart.rule[e]]
            j, left_head, right_head = chart.end[left], head[left], head[right]
            first, second = length_bucket(j - i), length_bucket(k - j)
            sum_into(u, sums[EDGE_START, i], sums[EDGE_END, k], sums[SPLIT, j])
            add_to(u, hidden.length[1, first])
            add_to(u, hidden.length[2, second])
            add_to(u, sums[LEFT_HEAD, left_head])
            add_to(u, sums[RIGHT_HEAD, right_head])
            # ∂g/∂v_rule = relu(u), and ∂g/∂u = v_rule where u > 0, for each row of the sum
            _backward(u, np.float32(of_edge[e]), hidden.rule[rule], tables.rule[rule], below)
            marks.rule[rule] = marks.length[1] = marks.length[2] = True
            add_to(back[EDGE_START, i], below)
            add_to(back[EDGE_END, k], below)
            add_to(back[SPLIT, j], below)
            add_to(back[LEFT_HEAD, left_head], below)
            add_to(back[RIGHT_HEAD, right_head], below)
            add_to(tables.length[1, first], below)
            add_to(tables.length[2, second], below)
    return back


@compiled()
def adagrad(
    tables: Hidden,
    squares: Hidden,
    first: TablesGradient,
    second: TablesGradient,
    rate: np.float32,
) -> None:
    """Take one step upwards along the sum of two gradients, and set both to zero."""
    (a, p), (b, q) = first, second
    _follow(tables.word, squares.word, (a.word, p.word), (b.word, q.word), rate)
    _follow(tables.tag, squares.tag, (a.tag, p.tag), (b.tag, q.tag), rate)
    _follow(tables.suffix, squares.suffix, (a.suffix, p.suffix), (b.suffix, q.suffix), rate)
    _follow(tables.label, squares.label, (a.label, p.label), (b.label, q.label), rate)
    _follow(tables.rule, squares.rule, (a.rule, p.rule), (b.rule, q.rule), rate)
    _follow(
        _flat(tables.length),
        _flat(squares.length),
        (_flat(a.length), p.length),
        (_flat(b.length), q.length),
        rate,
    )


@compiled(helper=True)
def _flat(table: Singles) -> Singles:
    return table.reshape(len(table), -1)


@compiled(helper=True, error_model="numpy")
def _follow(
    weight: Singles,
    squares: Singles,
    first: tuple[Singles, Bools],
    second: tuple[Singles, Bools],
    rate: np.float32,
) -> None:
    """Take the step in the rows that have either gradient: w += rate · g / √Σg²."""
    for r in range(len(weight)):
        if not first[1][r] and not second[1][r]:
            continue
        first[1][r] = second[1][r] = False
        w, q, g, h = weight[r], squares[r], first[0][r], second[0][r]
        for x in range(len(w)):
            total = g[x] + h[x]
            q[x] += total * total
            w[x] += rate * total / np.sqrt(q[x])
            g[x] = h[x] = np.float32(0.0)
