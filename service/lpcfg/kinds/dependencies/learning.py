"""Learn the network: log likelihood of trees, relations and tags, by Adam (Kingma and Ba 2015).

The loss of a sentence is −log p(tree) of a conditional random field over projective trees, and
−log p of every word's relation and tag. Dropout sets parts of each layer's output to 0, and whole
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
    arc_gradients,
    backward,
    forward,
    relation_gradients,
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
    relation_hidden,
    with_root,
    word_rows,
)

BETA_1, BETA_2 = 0.9, 0.99
"""Adam's β₁ and β₂."""
KEPT_MEAN, NEW_MEAN = np.float32(BETA_1), np.float32(1 - BETA_1)
KEPT_SQUARE, NEW_SQUARE = np.float32(BETA_2), np.float32(1 - BETA_2)
TINY = np.float32(1e-8)


class Example(NamedTuple):
    """A sentence to learn from: rows of facts, heads, and numbers of relations and tags."""

    rows: Longs
    heads: Longs
    relations: Longs
    tags: Longs


@dataclass(frozen=True)
class NetworkSettings:
    """The settings of the network and of its learning; docs/dependencies.md compares others."""

    layer: int = 192
    arc: int = 128
    relation: int = 64
    pair: int = 64
    epochs: int = 6
    batch: int = 16
    rate: float = 3e-3
    """Of Adam; it falls in a straight line to a twentieth"""
    left_out: float = 0.25
    """The dropout rate of every layer's output"""
    words_left_out: float = 0.2
    """The dropout rate of whole words"""


class Adam:
    """Adam with the parameters that it moves, and its averages of their derivatives and of the
    squares of these. In a table, only the rows that a batch uses move.
    """

    def __init__(self, parameters: dict[str, Singles]) -> None:
        self.parameters = parameters
        self._mean = {name: np.zeros_like(x) for name, x in parameters.items()}
        self._square = {name: np.zeros_like(x) for name, x in parameters.items()}
        self._steps = 0

    def step(self, gradients: Gradients, rate: float) -> None:
        self._steps += 1
        rate *= (1 - BETA_2**self._steps) ** 0.5 / (1 - BETA_1**self._steps)
        for name, d in gradients.items():
            if isinstance(d, tuple):
                rows, inverse = np.unique(d[0], return_inverse=True)
                summed = np.zeros((len(rows), d[1].shape[1]), np.float32)
                add_rows(summed, inverse, d[1])
                summed[rows == 0] = 0  # row 0 stays zero: it stands for nothing known
            else:
                summed = d.reshape(len(d), -1)
                rows = np.arange(len(d))
            arrays = self.parameters[name], self._mean[name], self._square[name]
            x, mean, square = (array.reshape(len(array), -1) for array in arrays)
            _adam(x, mean, square, summed, rows, np.float32(rate))


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _adam(
    x: Singles, mean: Singles, square: Singles, gradient: Singles, rows: Longs, rate: Any
) -> None:
    """Move these rows of x, given a row of the gradient for each:

    mean ← β₁ mean + (1 − β₁) d      square ← β₂ square + (1 − β₂) d²
    x ← x − rate · mean / (√square + tiny),    where `rate` makes up for the zeros at the start
    """
    for k in range(len(rows)):
        row = rows[k]
        for c in range(x.shape[1]):
            d = gradient[k, c]
            mean[row, c] = KEPT_MEAN * mean[row, c] + NEW_MEAN * d
            square[row, c] = KEPT_SQUARE * square[row, c] + NEW_SQUARE * d * d
            x[row, c] -= rate * mean[row, c] / (np.sqrt(square[row, c]) + TINY)


def learn(
    examples: Sequence[Example],
    table_rows: dict[str, int],
    vectors: Singles,
    classes: tuple[int, int],
    settings: NetworkSettings,
    *,
    seed: int,
    on_epoch: Callable[[int, float], None] = lambda _epoch, _loss: None,
) -> Parameters:
    """Learn parameters. The same seed gives the same numbers.

    Args:
        table_rows: the number of rows of the table of every fact
        vectors: eigenwords, by the last column of the examples' rows
        classes: the numbers of relations and of tags
        on_epoch: told the number of each epoch, from 0, and the mean loss of a sentence in it
    """
    sizes = Sizes(settings.layer, settings.arc, settings.relation, settings.pair, *classes)
    random = np.random.default_rng([seed, 1])
    adam = Adam(initial(table_rows, vectors.shape[1], sizes, seed))
    steps, total = 0, settings.epochs * -(-len(examples) // settings.batch)
    for epoch in range(settings.epochs):
        loss = 0.0
        for chosen in _batches(len(examples), settings.batch, random):
            gradients, of_batch = batch_gradients(
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


def batch_gradients(
    p: Parameters,
    examples: Sequence[Example],
    vectors: Singles,
    settings: NetworkSettings,
    random: np.random.Generator,
) -> tuple[Gradients, float]:
    """Compute the derivatives of a batch's loss by all parameters, and the loss."""
    batch, known = _with_word_dropout(
        batch_of([example.rows for example in examples]), settings, random
    )
    of_tags, last, kept = forward(p, batch, vectors[known], settings.left_out, random)
    states, words = with_root(p, batch, last), word_rows(batch)
    heads = np.concatenate([example.heads for example in examples])
    gradients: Gradients = {}
    loss, d_states = arc_gradients(p, states, arc_parts(p, states), batch, heads, gradients)
    loss += _relations(p, states, examples, batch, gradients, d_states)
    tags = np.concatenate([example.tags for example in examples])
    log, d_score = _cross_entropy(of_tags[words] @ p["tag.out"] + p["tag.bias"], tags)
    gradients["tag.out"], gradients["tag.bias"] = of_tags[words].T @ d_score, d_score.sum(axis=0)
    d_tags = np.zeros_like(of_tags)
    d_tags[words] = d_score @ p["tag.out"].T
    gradients["root"] = d_states[batch.first - 1].sum(axis=0)
    d_states[batch.first - 1] = 0
    backward(p, batch, kept, d_tags, d_states, gradients)
    return gradients, loss - log


def _relations(
    p: Parameters,
    states: Singles,
    examples: Sequence[Example],
    batch: Batch,
    gradients: Gradients,
    d_states: Singles,
) -> float:
    """Compute −log p of the relations, given the heads, and add its derivatives to `gradients` and
    `d_states`.
    """
    modifiers = word_rows(batch)
    root = np.repeat(batch.first - 1, batch.length)
    heads = root + np.concatenate([example.heads for example in examples])
    ends = Ends(heads, modifiers, distance_rows(heads, modifiers))
    hidden = relation_hidden(p, states[heads], states[modifiers], ends.distances)
    truth = np.concatenate([example.relations for example in examples])
    log, d_score = _cross_entropy(hidden @ p["relation.out"] + p["relation.bias"], truth)
    relation_gradients(p, states, ends, hidden, d_score, gradients, d_states)
    return -log


def _cross_entropy(score: Singles, truth: Longs) -> tuple[float, Singles]:
    """Compute Σ log p of the truth, and the derivatives of its negative by the scores."""
    logs = log_shares(score)
    row = np.arange(len(truth))
    d_score = np.exp(logs).astype(np.float32)
    d_score[row, truth] -= 1
    return float(logs[row, truth].sum()), d_score


def _with_word_dropout(
    batch: Batch, settings: NetworkSettings, random: np.random.Generator
) -> tuple[Batch, Longs]:
    """Return the batch with some words' own rows set to 0, which stands for unknown words, and the
    rows of its eigenwords, with some others set to 0.
    """
    rows = batch.rows.copy()
    rows[random.random(len(rows)) < settings.words_left_out, 0] = 0
    known = rows[:, -1] * (random.random(len(rows)) >= settings.words_left_out)
    return batch._replace(rows=rows), known
