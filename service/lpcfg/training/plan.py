"""Plan a training: which trees each model learns from, which are held out, and what for.

Under a rescoring layer, held-out trees are those of the last jackknife fold, which a model of all
others has not seen. Without a layer they are runs of neighbours, spread evenly over the treebank
and so long that the model has little of the same documents. Single trees, whose neighbours the
layer knew, left errors of .016 on gum/dev and .018 on craft/dev. Holding out costs at most a SHARE
of the trees.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from lpcfg.grammar.tables import Bools, Ints, Longs
from lpcfg.training.config import TrainingConfig
from lpcfg.training.data.treebank import Forest
from lpcfg.training.rescoring.domains import domains_of
from lpcfg.training.rescoring.jackknife import folds_of

SHARE = 0.1
"""The largest share of the training trees that is held out.

One in 20 of GUM's trees is too few: other draws of them left errors of .015 to .022 on dev. If
holding out costs much, members learn from all trees afterwards.
"""
SPARED = 0.04
"""The largest share of held-out trees that members may miss.

Above it, members learn once more from all trees, and keep the calibration of those that did not.
"""
RUN = 75
"""The most neighbours that are held out in one run: a document of GUM has 40 trees."""
FEWEST = 50
"""The fewest trees to hold out. Fewer have under 2,000 spans, too few for a map."""
FEWEST_CHARTS = 100
"""The fewest trees to learn a layer from: folds of fewer are too small to learn members from."""
MOST_PARSED = 4000
"""The most trees of the last fold that are parsed, as many from each treebank where it has them.
They are learned from all the same, so that more cost time alone: 148, 296 and 1,185 trees of GUM
left errors of .013, .012 and .010 on gum/dev. So are at most as many of a domain that is left out:
what is to come is as often unlike the treebanks as like them, so far as anyone knows.
"""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A domain that one model does not learn from: its trees, and those of them that are parsed."""

    domain: str
    trees: Longs
    parsed: Longs


@dataclass(frozen=True, eq=False)
class Plan:
    """The trees of every model of a training, by their numbers in the forest.

    final           trees that the published model learns from
    charted         those of them that people annotated, of which a layer learns the charts
    fold            the jackknife fold of each tree of `final`: its charts are made by a model of
                    the other folds; −1 if it is not charted. Empty without a layer
    held_out        trees that tell how much members weigh, how many steps they take, and how sure
                    the model may be
    held_out_model  trees of the model that parses those, which it has not seen: the final model if
                    these are all of `final`; otherwise the final one takes over its calibration
    left_out        leave-one-domain-out: trees of these domains tell as well how sure it may be
    """

    final: Longs
    charted: Longs
    fold: Ints
    held_out: Longs
    held_out_model: Longs
    left_out: tuple[LeftOut, ...] = ()

    @classmethod
    def of(cls, forest: Forest, config: TrainingConfig, n_gold: int) -> "Plan":
        """Plan what is learned from a forest.

        Args:
            forest: the trees.
            config: how many to hold out, and whether there is to be a layer.
            n_gold: how many of its sources people annotated; the others are a parser's trees.

        Raises:
            TrainingError: if `domains` lacks one of a source.
        """
        held = held_out(forest, config.held_out, n_gold)
        rest, held_trees = np.flatnonzero(~held), np.flatnonzero(held)
        # Where steps are chosen by held-out trees, the final model cannot learn from these.
        twice = bool(held.any()) and not config.chooses_steps
        final = np.arange(forest.n_trees) if twice else rest
        charted = final[forest.source[final] < n_gold]
        settings = config.rescoring
        if settings is None or len(charted) < FEWEST_CHARTS:
            final = final if twice and len(held_trees) > SPARED * len(held) else rest
            return cls(final, charted, np.empty(0, np.int32), held_trees, rest)
        fold = np.full(len(final), -1, np.int32)
        fold[np.isin(final, charted)] = folds_of(forest, charted, settings.folds)
        names, domain = domains_of(settings.domains, forest.source)
        left_out = []
        for name in settings.unfamiliar if held.any() else ():
            trees = final[domain[final] == names.index(name)]
            left_out.append(LeftOut(name, trees, spread(trees, forest.source[trees], MOST_PARSED)))
        if twice:
            last = final[fold == fold.max()]
            held_trees = spread(last, forest.source[last], MOST_PARSED)
            rest = np.setdiff1d(final, last)
        return cls(final, charted, fold, held_trees, rest, tuple(left_out))

    @property
    def has_layer(self) -> bool:
        return len(self.fold) > 0

    @property
    def has_two_models(self) -> bool:
        """True if the final model learns from held-out trees, so that another one parses them."""
        return len(self.held_out_model) < len(self.final)


def held_out(forest: Forest, most: int, n_gold: int | None = None) -> Bools:
    """Mark up to so many trees to hold out, of the first `n_gold` sources, or of all."""
    total = forest.n_trees if n_gold is None else int((forest.source < n_gold).sum())
    count = min(most, int(SHARE * total))
    held = np.zeros(forest.n_trees, np.bool_)
    if count >= FEWEST:
        runs = -(-count // RUN)
        sizes = np.diff(np.arange(runs + 1) * count // runs)
        starts = (np.arange(runs) * 2 + 1) * total // (2 * runs) - sizes // 2
        for start, size in zip(starts, sizes, strict=True):
            held[start : start + size] = True
    return held


def spread(trees: Longs, source: Ints, most: int) -> Longs:
    """Choose at most so many of these trees: evenly, and as many of every source where it has them.

    source[k] is the source of the k-th tree.
    """
    parts = sorted((trees[source == number] for number in np.unique(source)), key=len)
    chosen = [np.empty(0, np.int64)]
    for done, part in enumerate(parts):
        left = most - sum(map(len, chosen))
        count = min(left // (len(parts) - done), len(part))
        chosen.append(part[np.arange(count) * len(part) // max(count, 1)])
    return np.sort(np.concatenate(chosen))


def warning_of(forest: Forest, most: int) -> str | None:
    """Say that a treebank is too small to hold trees out, so that probabilities stay as they are.

    There is nothing to say if no trees were to be held out.
    """
    enough = ceil(FEWEST / SHARE)
    if most < FEWEST or forest.n_trees >= enough:
        return None
    have = "1 tree is" if forest.n_trees == 1 else f"{forest.n_trees} trees are"
    return (
        f"{have} too few to hold out {FEWEST}, so probabilities are not calibrated: give at least "
        f"{enough} trees, or adapt a model to these (`lpcfg train --base MODEL`)"
    )
