"""Learn the network: log likelihood of trees, relations and tags, by Adam (Kingma and Ba 2015).

The loss of a sentence is −log p(tree) of a conditional random field over projective trees, and
−log p of every word's relation and tag. Parts of each layer are left out at random, and whole
words: their rows, or their eigenwords.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Longs, Singles
from lpcfg.kinds.dependencies.gradients import (
    Ends,
    Gradients,
    add_rows,
    backward,
    by_arcs,
    by_relations,
    forward,
)
from lpcfg.kinds.dependencies.network import (
    Batch,
    Parameters,
    Sizes,
    arc_parts,
    batch_of,
    distance_rows,
    initial,
    log_shares,
    places,
    relation_hidden,
    with_root,
)

FIRST, SECOND = 0.9, 0.99
"""Adam's β₁ and β₂."""
KEPT_FIRST, NEW_FIRST = np.float32(FIRST), np.float32(1 - FIRST)
KEPT_SECOND, NEW_SECOND = np.float32(SECOND), np.float32(1 - SECOND)
TINY = np.float32(1e-8)


class Example(NamedTuple):
    """A sentence to learn from: rows of facts, heads, and numbers of relations and tags."""

    rows: Longs
    heads: Longs
    relations: Longs
    tags: Longs


@dataclass(frozen=True)
class Settings:
    """The settings of learning; docs/dependencies.md tells what others give."""

    layer: int = 192
    arc: int = 128
    relation: int = 64
    pair: int = 64
    epochs: int = 6
    batch: int = 16
    rate: float = 3e-3
    """Of Adam; it falls in a straight line to a twentieth"""
    left_out: float = 0.25
    """The share of every layer's numbers"""
    words_left_out: float = 0.2


class Adam:
    """The state of Adam. In a table, only the rows that a batch uses move."""

    def __init__(self, parameters: dict[str, Singles]) -> None:
        self.parameters = parameters
        self._first = {name: np.zeros_like(x) for name, x in parameters.items()}
        self._second = {name: np.zeros_like(x) for name, x in parameters.items()}
        self._steps = 0

    def step(self, gradients: Gradients, rate: float) -> None:
        self._steps += 1
        rate *= (1 - SECOND**self._steps) ** 0.5 / (1 - FIRST**self._steps)
        for name, gradient in gradients.items():
            if isinstance(gradient, tuple):
                rows, inverse = np.unique(gradient[0], return_inverse=True)
                together = np.zeros((len(rows), gradient[1].shape[1]), np.float32)
                add_rows(together, inverse, gradient[1])
                together[rows == 0] = 0  # row 0 stays zero: it stands for nothing known
            else:
                together = gradient.reshape(len(gradient), -1)
                rows = np.arange(len(gradient))
            arrays = self.parameters[name], self._first[name], self._second[name]
            x, first, second = (array.reshape(len(array), -1) for array in arrays)
            _adam(x, first, second, together, rows, np.float32(rate))


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _adam(
    x: Singles, first: Singles, second: Singles, gradient: Singles, rows: Longs, rate: Any
) -> None:
    """Move these rows of x, given a row of the gradient for each."""
    for k in range(len(rows)):
        row = rows[k]
        for c in range(x.shape[1]):
            by = gradient[k, c]
            first[row, c] = KEPT_FIRST * first[row, c] + NEW_FIRST * by
            second[row, c] = KEPT_SECOND * second[row, c] + NEW_SECOND * by * by
            x[row, c] -= rate * first[row, c] / (np.sqrt(second[row, c]) + TINY)


def learn(
    examples: Sequence[Example],
    table_rows: dict[str, int],
    vectors: Singles,
    classes: tuple[int, int],
    settings: Settings,
    *,
    seed: int,
    on_epoch: Callable[[int, float], None] = lambda _epoch, _loss: None,
) -> Parameters:
    """Learn parameters; `classes` are the numbers of relations and tags. The same seed gives the
    same numbers.
    """
    sizes = Sizes(settings.layer, settings.arc, settings.relation, settings.pair, *classes)
    random = np.random.default_rng([seed, 1])
    adam = Adam(initial(table_rows, vectors.shape[1], sizes, seed))
    steps, total = 0, settings.epochs * -(-len(examples) // settings.batch)
    for epoch in range(settings.epochs):
        loss = 0.0
        for chosen in _batches(len(examples), settings.batch, random):
            gradients, of_batch = derivatives(
                adam.parameters, [examples[k] for k in chosen], vectors, settings, random
            )
            loss += of_batch
            adam.step(gradients, settings.rate * (1 - 0.95 * steps / total))
            steps += 1
        on_epoch(epoch, loss / len(examples))
    return adam.parameters


def _batches(n: int, size: int, random: np.random.Generator) -> Iterator[list[int]]:
    order = random.permutation(n).tolist()
    for start in range(0, n, size):
        yield order[start : start + size]


def derivatives(
    p: Parameters,
    examples: Sequence[Example],
    vectors: Singles,
    settings: Settings,
    random: np.random.Generator,
) -> tuple[Gradients, float]:
    """Return the derivatives of a batch's loss by all parameters, and the loss."""
    batch, known = _left_out(batch_of([one.rows for one in examples]), settings, random)
    of_tags, last, layers = forward(p, batch, vectors[known], settings.left_out, random)
    states, words = with_root(p, batch, last), places(batch)
    heads = np.concatenate([one.heads for one in examples])
    out: Gradients = {}
    loss, by_states = by_arcs(p, states, arc_parts(p, states), batch, heads, out)
    loss += _relations(p, states, examples, batch, out, by_states)
    tags = np.concatenate([one.tags for one in examples])
    log, by = _cross_entropy(of_tags[words] @ p["tag.out"] + p["tag.bias"], tags)
    out["tag.out"], out["tag.bias"] = of_tags[words].T @ by, by.sum(axis=0)
    by_tags = np.zeros_like(of_tags)
    by_tags[words] = by @ p["tag.out"].T
    out["root"] = by_states[batch.first - 1].sum(axis=0)
    by_states[batch.first - 1] = 0
    backward(p, batch, layers, by_tags, by_states, out)
    return out, loss - log


def _relations(
    p: Parameters,
    states: Singles,
    examples: Sequence[Example],
    batch: Batch,
    out: Gradients,
    by_states: Singles,
) -> float:
    """Return −log p of the relations, given the heads, and add its derivatives."""
    modifiers = places(batch)
    root = np.repeat(batch.first - 1, batch.length)
    heads = root + np.concatenate([one.heads for one in examples])
    ends = Ends(heads, modifiers, distance_rows(heads, modifiers))
    hidden = relation_hidden(p, states[heads], states[modifiers], ends.distances)
    truth = np.concatenate([one.relations for one in examples])
    log, by = _cross_entropy(hidden @ p["relation.out"] + p["relation.bias"], truth)
    by_relations(p, states, ends, hidden, by, out, by_states)
    return -log


def _cross_entropy(score: Singles, truth: Longs) -> tuple[float, Singles]:
    """Compute Σ log p of the truth, and the derivatives of its negative by the scores."""
    logs = log_shares(score)
    at = np.arange(len(truth))
    by = np.exp(logs).astype(np.float32)
    by[at, truth] -= 1
    return float(logs[at, truth].sum()), by


def _left_out(batch: Batch, settings: Settings, random: np.random.Generator) -> tuple[Batch, Longs]:
    """Return the batch without some words, and the rows of its eigenwords, without some others."""
    rows = batch.rows.copy()
    rows[random.random(len(rows)) < settings.words_left_out, 0] = 0
    known = rows[:, -1] * (random.random(len(rows)) >= settings.words_left_out)
    return batch._replace(rows=rows), known
