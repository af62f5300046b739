"""Parse trees that a model has not seen, to fit calibration and member weights.

`training/plan.py` says which trees these are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lpcfg.grammar.tables import Bools, Longs, Tables
from lpcfg.kinds.calibration import Calibration, CheckedMap, Items, fit_checked
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.evaluate import SERVED, Examined, examine
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.surprisal import SurprisalQuantiles
from lpcfg.training.data.treebank import Forest, part_of, strees_of
from lpcfg.training.stages import Stage, Stages
from lpcfg.trees.binarize import restore
from lpcfg.trees.tree import Tree

LAG = 1.5
"""In points of F1; a member's weight falls by a factor of e for each LAG behind the best.

Equal weights give .3 less on craft/dev, where clustering with EM is far ahead, and no more on
gum/dev, where no member is; a LAG of 1 point gives as much, of 2 a tenth less.
"""


def restored(forest: Forest, chosen: Longs) -> tuple[Tree, ...]:
    """Return these trees of a forest as they were before binarization."""
    return tuple(restore(stree) for stree in strees_of(part_of(forest, chosen)))


class Parsed(NamedTuple):
    """A model, and trees to parse that it has not seen."""

    model: Model
    trees: Sequence[Tree]


class Maps(NamedTuple):
    """The maps of a model's span posteriors to shares of right spans, and how far both were apart.

    Domains have some of their own if the rescoring layer guesses domains.
    """

    common: CheckedMap
    domains: Mapping[str, CheckedMap]
    raw: Calibration
    surprisal: SurprisalQuantiles | None
    """The surprisal of the trees' sentences, by length."""

    @property
    def kept(self) -> dict[str, MonotoneMap]:
        """The maps of those domains that have a better one than the common one."""
        return {
            name: checked.kept for name, checked in self.domains.items() if checked.kept is not None
        }


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out trees, and a model without members in which members are tried."""

    trees: Sequence[Tree]
    model: Model
    workers: int

    def f1(self, *members: Tables) -> float:
        """Compute the strict F1 of these members on the trees' untagged words."""
        parser = Parser(replace(self.model, members=members, weights=()))
        examined = examine(parser, self.trees, workers=self.workers)
        return examined.against(self.trees).brackets.f1

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
        domain.

        Every other tree is a half: a map is kept only if the map of one half makes the
        probabilities of the other half truer, and that of a domain only if it makes them truer than
        the common one does. There is none if there are no spans, because all trees have one word.

        Args:
            model: the model, which has not seen these trees.
            stages: where the stage is recorded.
            others: models that each lack a domain, with trees of it. Their spans count for the
                domain that a sentence is taken for, and all of them for no domain.
        """
        parsed = [Parsed(model, self.trees), *others]
        with stages.stage("calibration", sum(len(trees) for _, trees in parsed)) as stage:
            parsers = [Parser(each) for each, _ in parsed]
            first, second = (
                self._half(parsers, [trees[k::2] for _, trees in parsed], stage) for k in range(2)
            )
        halves = first.items(), second.items()
        common = fit_checked(*halves, threshold=SERVED)
        known = None if model.rescoring is None else model.rescoring.domains
        domains = {
            name: fit_checked(
                first.items(name),
                second.items(name),
                instead_of=halves if common.kept else None,
                threshold=SERVED,
            )
            for name in (() if known is None else sorted({"", *known.names}))
        }
        examined = Examined.joined([first.examined, second.examined])
        sentences = (*first.surprisals, *second.surprisals)
        quantiles = SurprisalQuantiles.fitted(
            [words for words, _ in sentences], [each for _, each in sentences]
        )
        return Maps(common, domains, examined.raw_calibration, quantiles)

    def _half(
        self, parsers: Sequence[Parser], trees: Sequence[Sequence[Tree]], stage: Stage
    ) -> "_Half":
        """Examine every other tree, under the models that have not seen them."""
        known, *others = (
            self._examined(parser, some, stage) for parser, some in zip(parsers, trees, strict=True)
        )
        examined = Examined.joined([known, *others])
        is_other = np.arange(len(examined.raw)) >= len(known.raw)
        return _Half(examined, is_other, known.surprisals)

    def _examined(self, parser: Parser, trees: Sequence[Tree], stage: Stage) -> Examined:
        before = stage.items

        def follow(what: str, done: int, total: int) -> None:
            stage.follow(what, before + done, total)

        return examine(parser, trees, workers=self.workers, progress=follow)


class _Half(NamedTuple):
    """A half of the trees, examined.

    `left_out` marks spans under a model that lacks their domain; `surprisals` are the numbers of
    words and the surprisals of the sentences under the model that lacks none.
    """

    examined: Examined
    left_out: Bools
    surprisals: Sequence[tuple[int, float]]

    def items(self, domain: str | None = None) -> Items:
        """Return raw probabilities and truths of spans, of all or of one domain."""
        spans = self.examined
        if domain is None:
            return spans.raw, spans.correct
        chosen = spans.kind == domain
        if not domain:
            chosen |= self.left_out
        return spans.raw[chosen], spans.correct[chosen]
