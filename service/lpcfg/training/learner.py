"""Learn a model from a forest: its grammar, lexicon, tag model and members, without calibration."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Grammar, Tables
from lpcfg.kinds.constituency.model import Fallback, Model, fallback_grammar
from lpcfg.training import tagger
from lpcfg.training.config import TrainingConfig
from lpcfg.training.data import context
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.held_out import HeldOut
from lpcfg.training.data.treebank import (
    Forest,
    lexicon_of,
    node_rules,
    part_of,
    rules_of,
    times_of,
    unmarked,
)
from lpcfg.training.distributed import map_members
from lpcfg.training.estimators import pcfg as counts
from lpcfg.training.estimators.inputs import Choose, EstimatorInputs
from lpcfg.training.estimators.registry import Facts
from lpcfg.training.stages import Stages
from lpcfg.trees.tree import Tree


class LearnedModel(NamedTuple):
    """A model, what it was learned from, and facts of its members and of its calibration."""

    examples: Examples
    model: Model
    members: list[Facts]
    held_out: Facts


@dataclass(frozen=True, eq=False)
class Learner:
    """Learns models that differ by their trees alone.

    workers         of this machine
    scheduler       address of the dask.distributed scheduler that learns members, if there is one
    stages          where the stages of learning are recorded
    """

    config: TrainingConfig
    workers: int = 1
    scheduler: str | None = None
    stages: Stages = field(default_factory=Stages)

    def under(self, prefix: str) -> "Learner":
        """Return the same learner, for stages whose names begin with a prefix."""
        return replace(self, stages=self.stages.under(prefix))

    def apart(self) -> "Learner":
        """Return a learner for another process, which records stages of its own."""
        return replace(self, stages=self.stages.apart())

    def learn(
        self,
        forest: Forest,
        held_out: Sequence[Tree] = (),
        before: tagger.TaggerState | None = None,
    ) -> LearnedModel:
        """Learn a model from a forest.

        Args:
            forest: the trees to learn from.
            held_out: trees by which members choose their steps, where the configuration says so.
            before: the weights of another model's tagger, from which this one's goes on.
        """
        config = self.config
        with self.stages.stage("grammar and lexicon"):
            weighted = self._weighted(forest)
            lexicon = lexicon_of(
                weighted, rare_threshold=config.rare_threshold, language=config.language
            )
            examples = Examples.of(weighted, lexicon)
            model = self._coarse_model(examples, lexicon, unmarked(weighted))
        with ThreadPoolExecutor(1) as beside:
            tagging = beside.submit(self.learn_tagger, forest, before)
            if self.workers == 1:
                tagging.result()
            choose = None
            if held_out and config.chooses_steps:
                tagged = with_tagger(model, tagging.result())
                choose = HeldOut(held_out, tagged, self._at_once).f1
            members, facts = self._members(examples, choose)
        model = with_tagger(replace(model, members=members), tagging.result())
        return LearnedModel(examples, model, facts, {})

    def learn_tagger(
        self, forest: Forest, before: tagger.TaggerState | None = None
    ) -> tagger.TaggerState | None:
        """Learn the weights of the tagger, if there is to be one; it may go on from another's."""
        config = self.config
        if not config.tagger or config.rare_threshold == 0:
            return None
        weighted = self._weighted(forest)
        with self.stages.stage("tagger") as stage:
            file = config.word_classes
            classes = None if file is None else tagger.read_classes(file)
            return tagger.learn_tagger(
                weighted, seed=config.seed, stage=stage, classes=classes, before=before
            )

    @property
    def _at_once(self) -> int:
        """Workers of this machine for one member: members on a scheduler take none of them."""
        return self.workers if self.scheduler is None else 1

    def _weighted(self, forest: Forest) -> Forest:
        """Repeat the trees of each source as often as its weight says."""
        if not self.config.emphasis:
            return forest
        times = times_of(forest, self.config.emphasis)
        return part_of(forest, np.repeat(np.arange(forest.n_trees), times))

    def _coarse_model(self, examples: Examples, lexicon: Lexicon, plain: Forest) -> Model:
        """Build the model of counts alone, without members."""
        return Model(
            grammar=examples.grammar,
            lexicon=lexicon,
            coarse=counts.estimate(examples),
            context=context.estimate(examples.forest),
            fallback=_fallback(plain, examples.grammar) if self.config.horizontal else None,
            horizontal=self.config.horizontal,
        )

    def _members(
        self, examples: Examples, choose: Choose | None
    ) -> tuple[tuple[Tables, ...], list[Facts]]:
        """Estimate the members' tables and facts. There are none if the model is counts alone."""
        members, stages = self.config.members, self.stages
        all_inputs = [
            EstimatorInputs(
                examples=examples,
                seed=seed,
                workers=self._at_once,
                stages=stages if len(members) == 1 else stages.under(f"member {k}"),
                choose=choose,
            )
            for k, seed in enumerate(self.config.seeds(), start=1)
        ]
        learned = map_members(all_inputs, members, self.scheduler)
        facts = [told for _, told in learned]
        if [member.estimator for member in members] == ["counts"]:
            return (), facts
        return tuple(tables for tables, _ in learned), facts


def with_tagger(model: Model, weights: tagger.TaggerState | None) -> Model:
    """Return the model with a tagger of these weights, if there are any."""
    return model if weights is None else replace(model, tagger=weights.model())


def _fallback(plain: Forest, grammar: Grammar) -> Fallback:
    """Build the model of counts without sibling marks, for what the grammar cannot span."""
    other = fallback_grammar(grammar, plain.symbols[: plain.n_internal], rules_of(plain))
    coarse = counts.relative_frequencies(plain, other, node_rules(plain, other))
    return Fallback(other, coarse, context.estimate(plain))
