"""Trees that nothing is learned from, to learn from them how sure a model may be.

They are spread evenly over the treebank: runs of 20, 40 or 75 trees in a row, though less like the
trees around them, made no better maps. The model never learns from their words, so these are as new
to it as those of any text to come; that costs at most a SHARE of the trees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lpcfg.evaluation.brackets import score
from lpcfg.evaluation.calibration import Calibration, fit_monotone
from lpcfg.evaluation.run import Examined, examine
from lpcfg.grammar.tables import Tables
from lpcfg.models.calibration_map import MonotoneMap
from lpcfg.models.model import Model
from lpcfg.parsing.parser import Parser
from lpcfg.train.data.treebank import Forest, part_of, strees_of
from lpcfg.train.stages import Stages
from lpcfg.trees.binarize import restore
from lpcfg.trees.tree import Tree

SHARE = 0.1
"""Of the training trees: no more are held out. One in 20 of GUM's is too few: other draws of them
left errors of .015 to .022 on dev. Where it costs much, members learn from all trees afterwards."""
LAG = 1.5
"""Points of F1. Equal weights give .3 less on craft/dev, where clustering with EM is far ahead, and
no more on gum/dev, where no member is; weights by 1 point give as much, by 2 a tenth less."""
FEWEST = 50
"""Trees to hold out, or none: fewer have under 2,000 spans, too few for a map."""


def split(forest: Forest, most: int) -> tuple[Forest, tuple[Tree, ...]]:
    """The forest to learn from, and up to so many held-out trees, restored."""
    count = min(most, int(SHARE * forest.n_trees))
    if count < FEWEST:
        return forest, ()
    held = np.zeros(forest.n_trees, np.bool_)
    held[(np.arange(count) * 2 + 1) * forest.n_trees // (2 * count)] = True
    trees = tuple(restore(stree) for stree in strees_of(part_of(forest, np.flatnonzero(held))))
    return part_of(forest, np.flatnonzero(~held)), trees


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out trees and the model, as far as counting leads, that members are tried in."""

    trees: Sequence[Tree]
    model: Model
    workers: int

    def f1(self, *members: Tables) -> float:
        """Strict F1 of these members on the trees' untagged words."""
        found = self._examined(members, Stages())
        return score(zip(self.trees, found.trees, strict=True)).brackets.f1

    def weights(self, members: Sequence[Tables], stages: Stages) -> tuple[float, ...]:
        """How much each member is to count beside the others: e-fold less a LAG of F1 behind the
        best; none where there is nothing to weigh."""
        if len(members) < 2:
            return ()
        with stages.stage("weights", len(members)) as stage:
            f1 = []
            for member in members:
                f1.append(self.f1(member))
                stage.advance(1)
        return tuple(np.exp((np.array(f1) - max(f1)) / LAG).tolist())

    def calibration(
        self, members: Sequence[Tables], weights: Sequence[float], stages: Stages
    ) -> tuple[MonotoneMap | None, Calibration]:
        """The map from these members' span posteriors to shares of right spans, and how far they
        were from each other; no map where there are no spans (all trees have one word)."""
        found = self._examined(members, stages, weights)
        fitted = fit_monotone(found.raw, found.correct) if len(found.raw) else None
        return fitted, found.raw_calibration

    def _examined(
        self, members: Sequence[Tables], stages: Stages, weights: Sequence[float] = ()
    ) -> Examined:
        parser = Parser(replace(self.model, members=tuple(members), weights=tuple(weights)))
        with stages.stage("calibration", len(self.trees)) as stage:
            return examine(parser, self.trees, workers=self.workers, progress=stage.follow)
