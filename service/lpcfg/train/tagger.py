"""Train the tagger on a forest: multinomial logistic regression, one token at a time.

The steps are Adagrad's, with one sum of squared gradients per row. At each step, a share `DROPOUT`
of a token's features is left out. This spreads weight over features that overlap, so that words
never seen can rely on the features they have.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lpcfg.compiled import compiled
from lpcfg.errors import TrainingError
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Ints, Longs, Singles
from lpcfg.grammar.tagging import FREQUENT, TagModel, feature_rows, templates_of
from lpcfg.text.files import lines
from lpcfg.train.data.treebank import Forest
from lpcfg.train.stages import Stage

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
EPOCHS = (3, 8)
"""The fewest and the most epochs, for any number of tokens."""


def estimate(
    forest: Forest,
    lexicon: Lexicon,
    *,
    seed: int,
    stage: Stage,
    rows: int = ROWS,
    classes: Mapping[str, int] | None = None,
) -> TagModel:
    """Train the tag model of a forest's leaves. The same seed gives the same bytes."""
    leaves = np.flatnonzero(forest.is_leaf)
    word, gold = forest.word[leaves], lexicon.tag_of[forest.symbol[leaves]]
    start = np.searchsorted(forest.tree[leaves], np.arange(forest.n_trees + 1))
    frequent = lexicon.seen_at_least(FREQUENT)
    empty = np.zeros((rows, len(lexicon.tags)), np.float32)
    coder = TagModel.rounded(lexicon.tags, frequent, empty, GAMMA, classes)
    coded = np.array([coder.codes(word) for word in forest.words], np.int64)
    weight = np.zeros((rows, len(lexicon.tags)), np.float32)
    squares = np.full(rows, 1e-6, np.float32)
    least, most = EPOCHS
    random = np.random.default_rng(seed)
    for _ in range(min(max(round(TOKENS / len(leaves)), least), most)):
        order = random.permutation(forest.n_trees)
        draw = int(random.integers(1 << 48))
        learn(weight, squares, coded, word, gold, start, order, draw, DROPOUT)
        stage.advance(len(leaves))
    return TagModel.rounded(lexicon.tags, frequent, weight, GAMMA, classes)


def read_classes(path: str) -> dict[str, int]:
    """Read a file that has a word, a tab and the number of its class on each line."""
    classes: dict[str, int] = {}
    for number, line in enumerate(lines(path), start=1):
        word, tab, found = line.rstrip("\r\n").partition("\t")
        if not (word and tab and found.isdecimal() and int(found) < MOST_CLASSES):
            raise TrainingError(
                f"expected a word, a tab and a number below {MOST_CLASSES} in line {number} of "
                f"{path}, got {line.strip()!r}: write the file with `lpcfg words classes`"
            )
        classes[word] = int(found)
    return classes


@compiled(fastmath={"reassoc", "contract", "nsz"})
def learn(
    weight: Singles,
    squares: Singles,
    coded: Longs,
    word: Ints,
    gold: Ints,
    start: Longs,
    order: Longs,
    draw: int,
    dropout: float,
) -> Any:
    """Run one epoch over trees in this order. Return the mean of −log p(t | x, neighbours).

    The log is taken before each step. The words of tree s are start[s] : start[s + 1], `draw` is
    where the random numbers start, and `dropout` the share of features that is left out.
    """
    tags = weight.shape[1]
    rows, share = np.empty(templates_of(coded), np.int64), np.empty(tags, np.float32)
    loss = 0.0
    for s in order:
        sentence = coded[word[start[s] : start[s + 1]]]
        for i in range(len(sentence)):
            feature_rows(sentence, i, len(weight), rows)
            kept = 0
            for k in range(len(rows)):
                draw = (draw * 0x5DEECE66D + 11) & 0xFFFFFFFFFFFF  # 48 bits
                if draw >= dropout * 2.0**48:
                    rows[kept] = rows[k]
                    kept += 1
            share[:] = 0
            for k in range(kept):
                row = weight[rows[k]]
                for t in range(tags):
                    share[t] += row[t]
            largest, total = share.max(), np.float32(0.0)
            for t in range(tags):
                share[t] = np.exp(share[t] - largest)
                total += share[t]
            for t in range(tags):
                share[t] /= total
            truth = gold[start[s] + i]
            loss -= np.log(max(share[truth], np.float32(1e-12)))
            share[truth] -= np.float32(1.0)
            square = np.float32(0.0)
            for t in range(tags):
                square += share[t] * share[t]
            if square < 1e-6:  # the right tag is almost certain
                continue
            for k in range(kept):
                squares[rows[k]] += square
                step = np.float32(RATE) / np.sqrt(squares[rows[k]])
                row = weight[rows[k]]
                for t in range(tags):
                    row[t] -= step * share[t]
    return loss / max(len(word), 1)
