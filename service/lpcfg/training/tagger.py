"""Train the tagger on a forest: multinomial logistic regression, one token at a time.

The steps are Adagrad's, with one sum of squared gradients per row. At each step, a share `DROPOUT`
of a token's features is left out. This spreads weight over features that overlap, so that words
never seen can rely on the features they have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpcfg.base.errors import TrainingError
from lpcfg.base.jit import compiled
from lpcfg.grammar.lexicon import tags_of
from lpcfg.grammar.tables import Ints, Longs, Singles
from lpcfg.grammar.tagging import FREQUENT, TagModel, feature_rows, templates_of
from lpcfg.text.files import lines
from lpcfg.training.data.treebank import Forest
from lpcfg.training.stages import Stage

ROWS = 1 << 16
"""Rows that features share.

Twice as many tag 0.2 % more of gum/dev's tokens correctly when the tagger is used alone, and none
more within the parser.
"""
GAMMA = 0.6
"""The tagger's weight g in the lexicon. On gum/dev and craft/dev, 0.5 to 0.7 are equally good."""
RATE = 0.3
DROPOUT = 0.4
TOKENS = 1_200_000
"""How many tokens to learn from. A token counts again in every epoch."""
MOST_CLASSES = 1 << 16
WIDTH = 16
"""The numbers that the widest instructions take at a time. The length of a row is a multiple of it:
one epoch of craft/train takes a tenth less time than with rows of 44 numbers.
"""
EPOCHS = (3, 8)
"""The fewest and the most epochs, for any number of tokens."""
FURTHER = 2
"""Epochs over all trees, where a tagger goes on from one of nearly all.

From a tagger of nine tenths of gum/train, 1, 2 and 3 epochs tag 94.34, 94.43 and 94.44 % of the
tokens of gum/dev correctly when it is used alone, and 8 epochs anew 94.42 (means of two seeds).
"""


Coded = Mapping[tuple[str, bool], Sequence[int]]
"""The codes of words, each with whether it is frequent."""


@dataclass(frozen=True, eq=False)
class TaggerState:
    """The weights W while they are learned, unrounded, and the sums of squared gradients.

    Rows of W are filled up with zeros. `coded` are the words that were learned from.
    """

    tags: tuple[str, ...]
    frequent: frozenset[str]
    weight: Singles
    squares: Singles
    classes: Mapping[str, int] | None
    coded: Coded

    @classmethod
    def start(
        cls,
        forest: Forest,
        tags: tuple[str, ...],
        rows: int,
        classes: Mapping[str, int] | None,
        before: "TaggerState | None",
    ) -> "TaggerState":
        """Start at zero, or where learning from a part of the trees stopped."""
        weight = np.zeros((rows, -(-len(tags) // WIDTH) * WIDTH), np.float32)
        squares = np.full(rows, 1e-6, np.float32)
        count = np.bincount(forest.word[forest.is_leaf], minlength=len(forest.words))
        frequent = frozenset(forest.words[x] for x in np.flatnonzero(count >= FREQUENT))
        known: Coded = {}
        if before is not None:
            known = before.coded
            squares[:] = before.squares
            columns = [tags.index(tag) for tag in before.tags]
            weight[:, columns] = before.weight[:, : len(columns)]
        coder = TagModel.rounded(tags, frequent, np.zeros((1, len(tags)), np.float32), 0.0, classes)
        keys = ((word, word in frequent) for word in forest.words)
        coded = {key: known.get(key) or coder.codes(key[0]) for key in keys}
        return cls(tags, frequent, weight, squares, classes, coded)

    def model(self) -> TagModel:
        """Round the weights to those of a model."""
        weight = self.weight[:, : len(self.tags)]
        return TagModel.rounded(self.tags, self.frequent, weight, GAMMA, self.classes)


def learn_tagger(
    forest: Forest,
    *,
    seed: int,
    stage: Stage,
    rows: int = ROWS,
    classes: Mapping[str, int] | None = None,
    before: TaggerState | None = None,
) -> TaggerState:
    """Learn the weights of a forest's leaves. The same seed gives the same bytes.

    Args:
        forest: the trees.
        seed: of random numbers.
        stage: which shows progress.
        rows: that features share.
        classes: of words, which are features as well.
        before: the state for a part of the trees, from which learning goes on.
    """
    leaves = np.flatnonzero(forest.is_leaf)
    symbols = np.bincount(forest.symbol[leaves], minlength=len(forest.symbols))
    tags, tag_of = tags_of(forest.symbols, symbols > 0)
    word, gold = forest.word[leaves], tag_of[forest.symbol[leaves]]
    start = np.searchsorted(forest.tree[leaves], np.arange(forest.n_trees + 1))
    state = TaggerState.start(forest, tags, rows, classes, before)
    coded = np.array(list(state.coded.values()), np.int64)
    least, most = EPOCHS
    epochs = min(max(round(TOKENS / len(leaves)), least), most)
    random = np.random.default_rng(seed)
    for _ in range(epochs if before is None else FURTHER):
        order = random.permutation(forest.n_trees)
        draw = int(random.integers(1 << 48))
        learn_epoch(
            *(state.weight, state.squares, coded, word, gold, start, order, draw, DROPOUT),
            len(state.tags),
        )
        stage.advance(len(leaves))
    return state


def read_classes(path: str) -> dict[str, int]:
    """Read a file that has a word, a tab and the number of its class on each line."""
    classes: dict[str, int] = {}
    for number, line in enumerate(lines(path), start=1):
        word, tab, number_of_class = line.rstrip("\r\n").partition("\t")
        known = number_of_class.isdecimal() and int(number_of_class) < MOST_CLASSES
        if not (word and tab and known):
            raise TrainingError(
                f"expected a word, a tab and a number below {MOST_CLASSES} in line {number} of "
                f"{path}, got {line.strip()!r}: write the file with `lpcfg words classes`"
            )
        classes[word] = int(number_of_class)
    return classes


@compiled(borrows=True, fastmath={"reassoc", "contract", "nsz"})
def powers(x: Singles, largest: float) -> None:
    """Replace every number x by exp(x − largest), and differences below −60 by −60 first.

    With z = (x − largest) / 256 it is (1 + z + z²/2 + z³/6)²⁵⁶, of many numbers at a time: learning
    takes a third less time than with exact powers, one after the other. Above −20 it is wrong by
    less than 5 in 10,000 of itself, below by less than 4 in 100.
    """
    for t in range(len(x)):
        z = max((x[t] - np.float32(largest)) * np.float32(1 / 256), np.float32(-60 / 256))
        y = np.float32(1) + z * (np.float32(1) + z * (np.float32(0.5) + z * np.float32(1 / 6)))
        x[t] = y**256


@compiled(fastmath={"reassoc", "contract", "nsz"})
def learn_epoch(
    weight: Singles,
    squares: Singles,
    coded: Longs,
    word: Ints,
    gold: Ints,
    start: Longs,
    order: Longs,
    draw: int,
    dropout: float,
    tags: int,
) -> Any:
    """Run one epoch over trees in this order. Return the mean of −log p(t | x, neighbours).

    The log is taken before each step. The words of tree s are start[s] : start[s + 1], `draw` is
    where the random numbers start, and `dropout` the share of features that is left out. Rows of
    `weight` may be longer than the number of tags.
    """
    width = weight.shape[1]
    rows, share = np.empty(templates_of(coded), np.int64), np.empty(width, np.float32)
    loss = 0.0
    for s in order:
        sentence = coded[word[start[s] : start[s + 1]]]
        for i in range(len(sentence)):
            feature_rows(sentence, i, len(weight), rows)
            # of the token's features x, whose rows of W these are, leave a share out
            kept = 0
            for k in range(len(rows)):
                draw = (draw * 0x5DEECE66D + 11) & 0xFFFFFFFFFFFF  # 48 bits
                rows[kept] = rows[k]
                kept += draw >= dropout * 2.0**48
            # p(t | x) = exp(Σ_x W[x, t]) / Σ_t' exp(Σ_x W[x, t'])
            share[:] = 0
            for k in range(kept):
                row = weight[rows[k]]
                for t in range(width):
                    share[t] += row[t]
            largest, total = share[:tags].max(), np.float32(0.0)
            powers(share, largest)
            share[tags:] = 0
            for t in range(width):
                total += share[t]
            for t in range(width):
                share[t] /= total
            # the gradient of −log p(gold | x) is p(t | x) − [t = gold], the same in every row
            truth = gold[start[s] + i]
            loss -= np.log(max(share[truth], np.float32(1e-12)))
            share[truth] -= np.float32(1.0)
            square = np.float32(0.0)
            for t in range(width):
                square += share[t] * share[t]
            if square < 1e-6:  # the right tag is almost certain
                continue
            # Adagrad: q[x] += |gradient|²; W[x] −= RATE · gradient / √q[x]
            for k in range(kept):
                squares[rows[k]] += square
                step = np.float32(RATE) / np.sqrt(squares[rows[k]])
                row = weight[rows[k]]
                for t in range(width):
                    row[t] -= step * share[t]
    return loss / max(len(word), 1)
