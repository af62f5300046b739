"""The training pipeline: from treebank files to a published model, stage by stage.

Trees are read, planned (`plan`), learned from (`learner`, `rescoring`), calibrated on trees that
were held out (`data.held_out`), evaluated and published.
"""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lpcfg.base.executors import Dask, Pool
from lpcfg.grammar.tables import Longs
from lpcfg.kinds.constituency.evaluate import Examined, calibration_facts, examine
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.store.versions import Reference, check_publishable, publish
from lpcfg.text.files import Source
from lpcfg.text.languages import warning
from lpcfg.training.config import TrainingConfig
from lpcfg.training.data.held_out import HeldOut, Parsed, restored
from lpcfg.training.data.treebank import (
    Forest,
    first_words,
    forest_of,
    listed,
    part_of,
    read_forest,
    unmarked,
)
from lpcfg.training.estimators.registry import Facts
from lpcfg.training.learner import LearnedModel, Learner, with_tagger
from lpcfg.training.plan import FEWEST_CHARTS, Plan, warning_of
from lpcfg.training.rescoring.inherit import fits
from lpcfg.training.rescoring.run import LayerTraining
from lpcfg.training.rescoring.vectors import learn_vectors
from lpcfg.training.stages import Progress, StageRecord, Stages, silent
from lpcfg.training.summary import TrainReport, card, sizes, symbol_counts, unseen
from lpcfg.training.words import VectorSource
from lpcfg.trees.binarize import binarize
from lpcfg.trees.style import Style, read_normalized
from lpcfg.trees.tree import Tree

LOOKED_AT = 500
"""Trees of which the words tell the language."""
Sources = Source | Sequence[Source]
Note = Callable[[str], None]


def _ignore(warning: str) -> None:
    """Ignore a warning."""


def train_and_publish(
    sources: Sources,
    config: TrainingConfig,
    *,
    store: str | Path,
    name: str,
    dev: Sources | None = None,
    pool: Pool | None = None,
    scheduler: str | None = None,
    words: VectorSource | None = None,
    automatic: Source | None = None,
    progress: Progress = silent,
    note: Note = _ignore,
) -> tuple[Reference, TrainReport]:
    """Train, then publish the model as the next version of a name, all of it at once.

    Args:
        sources: files of the treebank.
        config: how to learn.
        store: the model store.
        name: the name of the model there.
        dev: files of trees to evaluate the model on.
        pool: processes that read and learn beside this one.
        scheduler: address of a dask.distributed scheduler that learns the members.
        words: where the rescoring layer's word vectors come from.
        automatic: trees of a parser, which are learned from and never held out.
        progress: is called with a stage's name, items done, and items in all.
        note: is called with a warning if the words look like those of another language.

    Returns:
        The published version, and a report.

    Raises:
        StoreError: before any work, if the store cannot be published to.
        TrainingError: if the configuration and the trees do not fit each other.
        TreebankError: if a file is not trees.
    """
    check_publishable(store, name)  # fails before the work instead of after it
    pool = pool or Pool(1)
    run = _Run(Learner(config, pool.workers, scheduler, Stages(progress)), pool, words, note)
    model, report = run.train(listed(sources), dev, automatic)
    with run.learner.stages.stage("publish"):
        bundle = to_bundle(
            model, facts=report.as_json(), card=card(name, report), exact=config.exact
        )
        reference = publish(store, name, bundle)
    return reference, report


def train(
    sources: Sources,
    config: TrainingConfig,
    *,
    dev: Sources | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    words: VectorSource | None = None,
    progress: Progress = silent,
) -> tuple[Model, TrainReport]:
    """Train a model; arguments and errors are those of `train_and_publish`.

    The model is the same, number by number, for any number of workers, here or on a
    dask.distributed scheduler.

    Returns:
        The model, and a report.
    """
    with Pool(workers) as pool:
        learner = Learner(config, workers, scheduler, Stages(progress))
        return _Run(learner, pool, words).train(listed(sources), dev)


@dataclass(frozen=True, eq=False)
class _Run:
    """One training: how models are learned, by which processes, and with which words' vectors."""

    learner: Learner
    pool: Pool
    words: VectorSource | None = None
    note: Note = _ignore

    def train(
        self, gold: Sequence[Source], dev: Sources | None, automatic: Source | None = None
    ) -> tuple[Model, TrainReport]:
        """Read, plan, learn and evaluate."""
        config, stages, scheduler = self.learner.config, self.learner.stages, self.learner.scheduler
        if scheduler is not None:
            with Dask(scheduler):  # fails before the work instead of after it
                pass
        forest = self._read(gold if automatic is None else [*gold, automatic])
        dev_files = None if dev is None else self._read_dev(dev)  # first, to fail early
        plan = Plan.of(forest, config, len(gold))
        with tempfile.TemporaryDirectory(prefix="lpcfg-charts-") as folder:
            layers, about_layer = self._layers(forest, plan, Path(folder))
            learned = _Models(forest, plan, self.learner, self.pool, layers).learn()
        report = TrainReport(
            configuration=config.as_json(),
            treebank={
                "fingerprint": forest.fingerprint,
                "licence": config.licence,
                "left_out": list(forest.left_out),
            },
            sizes=sizes(learned.examples),
            symbols=symbol_counts(learned.examples.forest),
            members=learned.members,
            held_out=learned.held_out,
            rescoring=about_layer,
            dev=None if dev_files is None else self._evaluate(dev_files, learned),
            stages=stages.records,
            warning=warning_of(forest, config.held_out),
        )
        return learned.model, report

    def _read(self, sources: Sequence[Source]) -> Forest:
        config = self.learner.config
        with self.learner.stages.stage("read") as stage:
            forest = read_forest(
                sources,
                horizontal=config.horizontal,
                sibling_threshold=config.sibling_threshold,
                style=Style(config.style),
                pool=self.pool,
                max_depth=config.max_depth,
                skip_bad=config.skip_bad,
            )
            stage.advance(forest.n_trees)
        foreign = warning(first_words(forest, LOOKED_AT), config.language)
        if foreign is not None:
            self.note(foreign)
        return forest

    def _read_dev(self, dev: Sources) -> "DevFiles":
        depth = self.learner.config.max_depth
        with self.learner.stages.stage("read dev") as stage:
            files = [
                (_short(source), list(read_normalized(source, max_depth=depth)))
                for source in listed(dev)
            ]
            stage.advance(sum(len(trees) for _, trees in files))
        return files

    def _layers(
        self, forest: Forest, plan: Plan, folder: Path
    ) -> tuple[LayerTraining | None, Facts]:
        """Prepare to learn the layer, with charts in a folder. Also return facts about it."""
        config, words = self.learner.config, self.words or VectorSource()
        settings, n_charted = config.rescoring, len(plan.charted)
        if settings is None:
            return None, {}
        if not plan.has_layer:
            too_few = f"{n_charted} trees are too few to learn a rescoring layer from: it takes "
            return None, {"left_out": f"{too_few}{FEWEST_CHARTS}"}
        vectors = words.vectors
        if vectors is None:
            with self.learner.stages.stage("words") as stage:
                vectors = learn_vectors(
                    _part(forest, plan.final),
                    words.texts,
                    settings,
                    seed=config.seed,
                    threads=self.learner.workers,
                    stage=stage,
                )
        source = "the treebank and texts" if words.texts else "the treebank"
        facts: dict[str, object] = {
            "trees": n_charted,
            "words": len(vectors.words),
            "vectors_from": words.model or source,
        }
        start = words.layer if fits(words.layer, settings.width) else None
        if start is not None:
            facts["begins_with"] = words.model
        return LayerTraining(forest, plan, self.learner, settings, vectors, start, folder), facts

    def _evaluate(self, files: "DevFiles", learned: LearnedModel) -> Facts:
        """Evaluate the model as it will be stored on dev files, with untagged words.

        Also count what dev files have and training has not.
        """
        exact, workers = self.learner.config.exact, self.pool.workers
        parser = Parser(from_bundle(to_bundle(learned.model, facts={}, card="", exact=exact)))
        gold = [tree for _, trees in files for tree in trees]
        facts = unseen(forest_of(map(binarize, gold)), unmarked(learned.examples.forest))
        examined = []
        with self.learner.stages.stage("evaluate on dev", len(gold)) as stage:
            for _, trees in files:
                examined.append(examine(parser, trees, workers=workers))
                stage.advance(len(trees))
        parts = [
            {"source": source, **_scores(trees, part)}
            for (source, trees), part in zip(files, examined, strict=True)
        ]
        return {**facts, **_scores(gold, Examined.joined(examined)), "parts": parts}


DevFiles = Sequence[tuple[str, Sequence[Tree]]]
"""The names of files to evaluate on, and their trees."""


def _scores(gold: Sequence[Tree], examined: Examined) -> Facts:
    return {**examined.against(gold).as_dict(), **calibration_facts(examined)}


def _short(source: Source) -> str:
    """Shorten a path to the file's and its folder's name: `craft/dev.mrg`."""
    return "/".join(Path(str(source)).parts[-2:])


def _part(forest: Forest, trees: Longs) -> Forest:
    """Return the forest of some of the trees, which is the same if they are all."""
    return forest if len(trees) == forest.n_trees else part_of(forest, trees)


# The models of a run ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Models:
    """The models of one training: the final one, and those that tell how sure it may be."""

    forest: Forest
    plan: Plan
    learner: Learner
    pool: Pool
    layers: LayerTraining | None

    def learn(self) -> LearnedModel:
        """Learn all models that the plan has, and return the final one with its calibration."""
        if self.layers is None and self.plan.has_two_models:
            return self._learn_both_at_once()
        plan, layers, stages = self.plan, self.layers, self.learner.stages
        learner = self.learner.under("held-out model") if plan.has_two_models else self.learner
        trees = restored(self.forest, plan.held_out) if len(plan.held_out) else ()
        learned = learner.learn(_part(self.forest, plan.held_out_model), trees)
        model, facts = learned.model, learned.held_out
        held = HeldOut(trees, model, learner.workers)
        model = replace(model, weights=held.weights(model.members, stages) if trees else ())
        if layers is not None:
            layers.add_folds(model.weights, model if plan.has_two_models else None)
            model = replace(model, rescoring=layers.layer(but_last=plan.has_two_models))
        if trees:
            model, facts = _calibrated(model, held, self._leave_out_domains(model), stages)
        if plan.has_two_models:
            learned = self.learner.learn(self.forest)
            layer = None if layers is None else layers.layer()
            model = replace(learned.model, **_calibration_of(model), rescoring=layer)
        return learned._replace(model=model, held_out=facts)

    def _leave_out_domains(self, like: Model) -> Sequence[Parsed]:
        """Learn models that each lack a domain, to parse trees of this domain.

        They tell how sure a model may be on texts unlike the treebanks'. Members weigh what those
        of another model do.
        """
        parsed: list[Parsed] = []
        if self.layers is None:
            return parsed
        for left_out in self.plan.left_out:
            learner = self.learner.under(f"without {left_out.domain}")
            rest = np.setdiff1d(np.arange(self.forest.n_trees), left_out.trees)
            model = learner.learn(part_of(self.forest, rest)).model
            layer = self.layers.layer_without(left_out, learner.stages)
            model = replace(model, weights=like.weights, rescoring=layer)
            parsed.append(Parsed(model, restored(self.forest, left_out.parsed)))
        return parsed

    def _learn_both_at_once(self) -> LearnedModel:
        """Learn the held-out model and, beside it, the final one, whose tagger goes on from the
        other's.
        """
        plan, learner, stages = self.plan, self.learner, self.learner.stages
        part, unseen = (part_of(self.forest, of) for of in (plan.held_out_model, plan.held_out))
        half = replace(learner, workers=max(learner.workers // 2, 1))
        with ThreadPoolExecutor(1) as here:
            learning = self.pool.submit(_learn_untagged, half.apart(), part)
            tagging = here.submit(learner.learn_tagger, part)
            final = here.submit(
                lambda: half.under("all trees").learn(self.forest, (), tagging.result())
            )
            model = with_tagger(_recorded(learning, stages), tagging.result())
            if learner.workers == 1:
                final.result()
            calibrating = self.pool.submit(_calibrate, half.apart(), model, unseen)
            calibration, facts = _recorded(calibrating, stages)
        learned = final.result()
        return learned._replace(model=replace(learned.model, **calibration), held_out=facts)


def _calibrated(
    model: Model, held: HeldOut, others: Sequence[Parsed], stages: Stages
) -> tuple[Model, Facts]:
    """Add maps of the model's posteriors, with and without the layer, and of its surprisal.

    Other models have trees that count as well. Also return facts about these maps.
    """
    plain = replace(model, rescoring=None)
    plain_others = [Parsed(replace(other, rescoring=None), trees) for other, trees in others]
    maps = held.calibration(plain, stages, plain_others)
    model = replace(model, calibration=maps.common.kept)
    facts: dict[str, object] = {
        "trees": len(held.trees),
        "weights": model.weights,
        "raw_calibration": maps.raw.as_dict(),
        "map": maps.common.as_dict(),
    }
    if others:
        facts["unfamiliar_trees"] = sum(len(trees) for _, trees in others)
    if model.rescoring is not None:
        maps = held.calibration(model, stages.under("rescored"), others)
        model = replace(model, rescored_calibration=maps.common.kept, kind_calibrations=maps.kept)
        facts["rescored_raw_calibration"] = maps.raw.as_dict()
        facts["rescored_map"] = maps.common.as_dict()
        facts["rescored_maps_of_kinds"] = {
            domain or "none": checked.as_dict() for domain, checked in maps.domains.items()
        }
    return replace(model, surprisal=maps.surprisal), facts


def _calibration_of(model: Model) -> dict[str, Any]:
    """Return what a model has learned from trees that it had not seen, by its fields."""
    names = ("weights", "calibration", "rescored_calibration", "kind_calibrations", "surprisal")
    return {name: getattr(model, name) for name in names}


# Work for a process beside this one ---------------------------------------------------------------

T = TypeVar("T")
Apart = tuple[T, list[StageRecord]]


def _recorded(work: "Future[Apart[T]]", stages: Stages) -> T:
    """Wait for work, and add the records of its stages to these."""
    result, records = work.result()
    stages.records += records
    return result


def _learn_untagged(learner: Learner, forest: Forest) -> Apart[Model]:
    """Learn a model without calibration and tagger."""
    learner = replace(learner, config=replace(learner.config, tagger=False))
    return learner.learn(forest).model, learner.stages.records


def _calibrate(
    learner: Learner, model: Model, unseen: Forest
) -> Apart[tuple[dict[str, Any], Facts]]:
    """Learn from trees that a model has not seen how sure it may be."""
    stages = learner.stages
    held = HeldOut(restored(unseen, np.arange(unseen.n_trees)), model, learner.workers)
    model = replace(model, weights=held.weights(model.members, stages))
    model, facts = _calibrated(model, held, (), stages)
    return (_calibration_of(model), facts), stages.records
