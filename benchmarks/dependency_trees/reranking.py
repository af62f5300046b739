"""Reranking of k-best trees (the dependency paper, section 4.3) by an averaged perceptron.

Features of a tree: counts of two triples of tags that an arc-factored parser cannot see,

    left modifier, head, right modifier       neighbours on either side of the head
    modifier, head, head's head               with the side of the modifier

the base parser's log probability, and any further numbers, such as log |p| of generative models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.grammar.tables import Doubles, Longs
from lpcfg.kinds.dependencies.arcs import Arcs, modifiers

PASSES = 10
FAR = 30.0
"""Logs further from the first candidate's than this tell no more."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The k best trees of a sentence: heads, a row each, numbers of each, and gold heads."""

    sentence: Arcs
    heads: Longs
    numbers: Doubles

    @property
    def right(self) -> Longs:
        """How many heads of every candidate are right."""
        return np.asarray((self.heads == np.array(self.sentence.heads)).sum(axis=1), np.int64)


def triples(heads: Sequence[int], tags: Sequence[str]) -> list[str]:
    """Return the triples of a tree, as strings."""
    result = []
    below = modifiers(heads)
    for h, mine in enumerate(below):
        if h == 0:
            continue
        left = [m for m in mine if m < h]
        right = [m for m in mine if m > h]
        result += [f"{tags[a - 1]} {tags[h - 1]} {tags[b - 1]}" for a in left for b in right]
        above = heads[h - 1]
        over = tags[above - 1] if above else "ROOT"
        side = ("L" if h < above else "R") if above else "-"
        result += [
            f"{'L' if m < h else 'R'}{side} {tags[m - 1]} {tags[h - 1]} {over}" for m in mine
        ]
    return result


@dataclass(frozen=True, eq=False)
class Reranker:
    """Weights of triples (by name) and of numbers, which are scaled by `scale` first."""

    names: dict[str, int]
    weights: Doubles
    number_weights: Doubles
    scale: Doubles

    def best(self, one: Candidates) -> int:
        """Return the row of the best candidate."""
        rows = _rows(one, self.names, grow=False) if len(self.weights) else None
        return int(np.argmax(self._scores(one, rows)))

    def _scores(self, one: Candidates, rows: list[Longs] | None) -> Doubles:
        scores: Doubles = scaled(one.numbers, self.scale) @ self.number_weights
        if rows is not None:
            scores = scores + [self.weights[row].sum() for row in rows]
        return scores


def scaled(numbers: Doubles, scale: Doubles) -> Doubles:
    """Return numbers as distances from the first candidate's, in units of `scale`, at most `FAR`
    apart.

    A probability of zero, a log of −inf, is as far below as any can be.
    """
    first = np.where(np.isfinite(numbers[:1]), numbers[:1], 0.0)
    result: Doubles = np.clip((numbers - first) / scale, -FAR, FAR)
    return result


def _rows(one: Candidates, names: dict[str, int], *, grow: bool) -> list[Longs]:
    """Return the numbers of every candidate's triples."""
    result = []
    for heads in one.heads.tolist():
        found = triples(heads, one.sentence.tags)
        if grow:
            row = [names.setdefault(name, len(names)) for name in found]
        else:
            row = [names[name] for name in found if name in names]
        result.append(np.array(row, np.int64))
    return result


def learn(
    examples: Sequence[Candidates],
    *,
    use_triples: bool = True,
    passes: int = PASSES,
    seed: int = 0,
    on_pass: Callable[[int], None] = lambda _number: None,
) -> Reranker:
    """Learn from lists of trees by parsers that had not seen their sentences (jack-knifed).

    The target is the candidate with the most right heads; the base score alone, the first number,
    starts with the weight 1, so that the first step already ranks as the base parser does.
    """
    width = examples[0].numbers.shape[1]
    spread = np.concatenate([scaled(one.numbers, np.ones(width)) for one in examples])
    scale = np.maximum(spread.std(axis=0), 1e-9)
    names: dict[str, int] = {}
    rows = [_rows(one, names, grow=True) if use_triples else None for one in examples]
    size = len(names) if use_triples else 0
    model = Reranker(names, np.zeros(size), np.eye(width)[0] * BASE_WEIGHT, scale)
    total, number_total = np.zeros(size), np.zeros(width)
    targets = [int(np.argmax(one.right)) for one in examples]
    numbers = [scaled(one.numbers, scale) for one in examples]
    random, steps = np.random.default_rng(seed), 0
    for number in range(passes):
        for k in random.permutation(len(examples)).tolist():
            steps += 1
            row = rows[k]
            guess = int(np.argmax(model._scores(examples[k], row)))
            if examples[k].right[guess] == examples[k].right[targets[k]]:
                continue
            if row is not None:
                np.add.at(model.weights, row[targets[k]], 1.0)
                np.add.at(model.weights, row[guess], -1.0)
                np.add.at(total, row[targets[k]], float(steps))
                np.add.at(total, row[guess], -float(steps))
            change = numbers[k][targets[k]] - numbers[k][guess]
            model.number_weights[:] += change
            number_total += steps * change
        on_pass(number)
    # The mean of the weights after every step is the last minus each step times when it came.
    return Reranker(
        names,
        model.weights - total / max(steps, 1),
        model.number_weights - number_total / max(steps, 1),
        scale,
    )


BASE_WEIGHT = 10.0
"""The weight of the base score before anything is learned, in units of its spread."""
