"""Parse trees that a model has not seen, to fit calibration and member weights.

Under a rescoring layer these are trees of its last fold (see `training/rescoring/jackknife.py`).
Otherwise they are held out: runs of neighbours, spread evenly over the treebank and so long that
the model has little of the same documents. Single trees, whose neighbours the layer knew, left
errors of .016 on gum/dev and .018 on craft/dev. Holding out costs at most a SHARE of the trees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

import numpy as np

from lpcfg.grammar.tables import Bools, Ints, Longs, Tables
from lpcfg.kinds.calibration import Calibration, CheckedMap, Items, fit_checked
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.evaluate import SERVED, Examined, examine
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.surprisal import Usual
from lpcfg.training.data.treebank import Forest, part_of, strees_of
from lpcfg.training.stages import Stage, Stages
from lpcfg.trees.binarize import restore
from lpcfg.trees.tree import Tree

SHARE = 0.1
"""The largest share of the training trees that is held out.

One in 20 of GUM's trees is too few: other draws of them left errors of .015 to .022 on dev. If
holding out costs much, members learn from all trees afterwards.
"""
LAG = 1.5
"""In points of F1; a member's weight falls by a factor of e for each LAG behind the best.

Equal weights give .3 less on craft/dev, where clustering with EM is far ahead, and no more on
gum/dev, where no member is; a LAG of 1 point gives as much, of 2 a tenth less.
"""
RUN = 75
"""The most neighbours that are held out in one run: a document of GUM has 40 trees."""
REHEARSED = 4000
"""The most trees of the last fold that are parsed, as many from each treebank where it has them.
They are learned from all the same, so that more cost time alone: 148, 296 and 1,185 trees of GUM
left errors of .013, .012 and .010 on gum/dev. So are at most as many of an unfamiliar kind of text:
what is to come is as often unlike the treebanks as like them, so far as anyone knows.
"""
FEWEST = 50
"""The fewest trees to hold out. Fewer have under 2,000 spans, too few for a map."""


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


def held_out(forest: Forest, most: int, gold: int | None = None) -> Bools:
    """Mark up to so many trees to hold out, of the first `gold` sources, or of all."""
    total = forest.n_trees if gold is None else int((forest.source < gold).sum())
    count = min(most, int(SHARE * total))
    held = np.zeros(forest.n_trees, np.bool_)
    if count >= FEWEST:
        runs = -(-count // RUN)
        sizes = np.diff(np.arange(runs + 1) * count // runs)
        starts = (np.arange(runs) * 2 + 1) * total // (2 * runs) - sizes // 2
        for start, size in zip(starts, sizes, strict=True):
            held[start : start + size] = True
    return held


def restored(forest: Forest, chosen: Longs) -> tuple[Tree, ...]:
    """Return these trees of a forest as they were before binarization."""
    return tuple(restore(stree) for stree in strees_of(part_of(forest, chosen)))


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


class Parsed(NamedTuple):
    """A model, and trees to parse that it has not seen."""

    model: Model
    trees: Sequence[Tree]


class Maps(NamedTuple):
    """The maps of a model's span posteriors to shares of right spans, and how far both were apart.

    Those of some kinds of text are there if the rescoring layer guesses kinds.
    """

    common: CheckedMap
    kinds: Mapping[str, CheckedMap]
    raw: Calibration
    usual: Usual | None
    """How much the trees' sentences surprise the model, by length."""

    @property
    def kept(self) -> dict[str, MonotoneMap]:
        """The maps of those kinds that have a better one than the common one."""
        return {kind: one.kept for kind, one in self.kinds.items() if one.kept is not None}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out trees, and a model without members in which members are tried."""

    trees: Sequence[Tree]
    model: Model
    workers: int

    def f1(self, *members: Tables) -> float:
        """Compute the strict F1 of these members on the trees' untagged words."""
        parser = Parser(replace(self.model, members=members, weights=()))
        found = examine(parser, self.trees, workers=self.workers)
        return found.against(self.trees).brackets.f1

    def weights(self, members: Sequence[Tables], stages: Stages) -> tuple[float, ...]:
        """Compute member weights, which fall by a factor of e for each LAG of F1 behind the best.

        Return none if there is nothing to weigh.
        """
        if len(members) < 2:
            return ()
        with stages.stage("weights", len(members)) as stage:
            f1 = []
            for member in members:
                f1.append(self.f1(member))
                stage.advance(1)
        return tuple(np.exp((np.array(f1) - max(f1)) / LAG).tolist())

    def calibration(self, model: Model, stages: Stages, others: Sequence[Parsed] = ()) -> Maps:
        """Fit the map from a model's span posteriors to shares of right spans, and one for every
        kind of text.

        Every other tree is a half: a map is kept only if the map of one half makes the
        probabilities of the other half truer, and that of a kind only if it makes them truer than
        the common one does. There is none if there are no spans, because all trees have one word.

        `others` are models that each lack a kind of text, with trees of this kind. Their spans
        count for the kind that a sentence is taken for, and all of them for no kind.
        """
        parsed = [Parsed(model, self.trees), *others]
        with stages.stage("calibration", sum(len(one.trees) for one in parsed)) as stage:
            parsers = [Parser(one.model) for one in parsed]
            first, second = (
                self._half(parsers, [one.trees[k::2] for one in parsed], stage) for k in range(2)
            )
        halves = first.items(), second.items()
        common = fit_checked(*halves, threshold=SERVED)
        domains = None if model.rescoring is None else model.rescoring.domains
        kinds = {
            kind: fit_checked(
                first.items(kind),
                second.items(kind),
                instead_of=halves if common.kept else None,
                threshold=SERVED,
            )
            for kind in (() if domains is None else sorted({"", *domains.names}))
        }
        found = Examined.joined([first.found, second.found])
        of_known = (*first.surprises, *second.surprises)
        words, surprises = [n for n, _ in of_known], [one for _, one in of_known]
        return Maps(common, kinds, found.raw_calibration, Usual.fitted(words, surprises))

    def _half(
        self, parsers: Sequence[Parser], trees: Sequence[Sequence[Tree]], stage: Stage
    ) -> "_Half":
        """Examine every other tree, under the models that have not seen them."""
        known, *others = (
            self._examined(parser, some, stage) for parser, some in zip(parsers, trees, strict=True)
        )
        found = Examined.joined([known, *others])
        return _Half(found, np.arange(len(found.raw)) >= len(known.raw), known.surprises)

    def _examined(self, parser: Parser, trees: Sequence[Tree], stage: Stage) -> Examined:
        before = stage.items

        def follow(what: str, done: int, total: int) -> None:
            stage.follow(what, before + done, total)

        return examine(parser, trees, workers=self.workers, progress=follow)


class _Half(NamedTuple):
    """A half of the trees, examined. `unfamiliar` are spans under a model that lacks their kind of
    text; `surprises` are those of the sentences of known kinds.
    """

    found: Examined
    unfamiliar: Bools
    surprises: Sequence[tuple[int, float]]

    def items(self, kind: str | None = None) -> Items:
        """Return raw probabilities and truths of spans, of all or of one kind of text."""
        found = self.found
        if kind is None:
            return found.raw, found.correct
        chosen = found.kind == kind if kind else (found.kind == kind) | self.unfamiliar
        return found.raw[chosen], found.correct[chosen]
