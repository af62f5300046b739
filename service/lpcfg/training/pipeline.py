"""The training pipeline: from treebank files to a published model, stage by stage."""

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lpcfg.base.executors import Dask, Pool
from lpcfg.engine.rescoring.layer import WordVectors
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Bools, Grammar, Longs, Tables
from lpcfg.kinds.constituency.evaluate import Examined, calibration_facts, examine
from lpcfg.kinds.constituency.model import Fallback, Model, fallback_grammar, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.store.versions import Reference, check_publishable, publish
from lpcfg.text.files import Source
from lpcfg.text.languages import warning
from lpcfg.training import tagger
from lpcfg.training.config import TrainingConfig
from lpcfg.training.data import context
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.folds import (
    REHEARSED,
    HeldOut,
    Parsed,
    held_out,
    restored,
    spread,
    warning_of,
)
from lpcfg.training.data.treebank import (
    Forest,
    first_words,
    forest_of,
    lexicon_of,
    listed,
    node_rules,
    part_of,
    read_forest,
    rules_of,
    times_of,
    unmarked,
)
from lpcfg.training.distributed import map_members
from lpcfg.training.estimators import pcfg as counts
from lpcfg.training.estimators.em import Choose
from lpcfg.training.estimators.registry import Job
from lpcfg.training.rescoring.inherit import fits
from lpcfg.training.rescoring.run import FEWEST, LayerTraining
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.rescoring.vectors import learn_vectors
from lpcfg.training.stages import Progress, StageRecord, Stages, silent
from lpcfg.training.summary import Facts, TrainReport, card, sizes, symbol_counts, unseen
from lpcfg.training.words import Words
from lpcfg.trees.binarize import binarize
from lpcfg.trees.style import Style, read_normalized
from lpcfg.trees.tree import Tree

SPARED = 0.04
"""The largest share of held-out trees that members may miss.

Above it, members learn once more from all trees, and keep the calibration of those that did not.
"""

LOOKED_AT = 500
"""Trees of which the words tell the language."""
Sources = Source | Sequence[Source]
Note = Callable[[str], None]


def _unheard(told: str) -> None:
    """Ignore what is told."""


def train_and_publish(
    sources: Sources,
    config: TrainingConfig,
    *,
    store: str | Path,
    name: str,
    dev: Sources | None = None,
    pool: Pool | None = None,
    scheduler: str | None = None,
    words: Words | None = None,
    automatic: Source | None = None,
    progress: Progress = silent,
    note: Note = _unheard,
) -> tuple[Reference, TrainReport]:
    """Train, then publish the model as the next version of a name, all of it at once.

    `automatic` are trees of a parser, which are learned from and never held out. `note` is told if
    the trees' words look like those of another language.
    """
    check_publishable(store, name)  # fails before the work instead of after it
    stages = Stages(progress)
    gold = listed(sources)
    all_sources = gold if automatic is None else [*gold, automatic]
    model, report = _train(
        all_sources,
        config,
        words or Words(),
        dev,
        pool or Pool(1),
        scheduler,
        stages,
        len(gold),
        note,
    )
    with stages.stage("publish"):
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
    words: Words | None = None,
    progress: Progress = silent,
) -> tuple[Model, TrainReport]:
    """Train a model from a treebank and a configuration. Also return a report.

    The model is the same, number by number, for any number of workers, here or on a
    dask.distributed scheduler.
    """
    with Pool(workers) as pool:
        return _train(sources, config, words or Words(), dev, pool, scheduler, Stages(progress))


def _train(
    sources: Sources,
    config: TrainingConfig,
    words: Words,
    dev: Sources | None,
    pool: Pool,
    scheduler: str | None,
    stages: Stages,
    n_gold: int | None = None,
    note: Note = _unheard,
) -> tuple[Model, TrainReport]:
    if scheduler is not None:
        with Dask(scheduler):  # fails before the work instead of after it
            pass
    with stages.stage("read") as stage:
        forest = read_forest(
            sources,
            horizontal=config.horizontal,
            sibling_threshold=config.sibling_threshold,
            style=Style(config.style),
            pool=pool,
            max_depth=config.max_depth,
            skip_bad=config.skip_bad,
        )
        stage.advance(forest.n_trees)
    foreign = warning(first_words(forest, LOOKED_AT), config.language)
    if foreign is not None:
        note(foreign)
    gold = None if dev is None else _gold(dev, config, stages)  # read first, to fail early
    run = _Run(forest, config, words, pool, scheduler, stages, n_gold)
    with tempfile.TemporaryDirectory(prefix="lpcfg-charts-") as folder:
        examples, model, facts = run.model(Path(folder))
    report = TrainReport(
        configuration=config.as_json(),
        treebank={
            "fingerprint": forest.fingerprint,
            "licence": config.licence,
            "left_out": list(forest.left_out),
        },
        sizes=sizes(examples),
        symbols=symbol_counts(examples.forest),
        members=facts,
        held_out=run.held_out,
        rescoring=run.rescoring,
        dev=None if gold is None else _on_dev(gold, model, examples, config, pool.workers, stages),
        stages=stages.records,
        warning=warning_of(forest, config.held_out),
    )
    return model, report


class _Learned(NamedTuple):
    """A model, what it was learned from, and facts of its members."""

    examples: Examples
    model: Model
    facts: list[Facts]


class _Run:
    """One training whose trees have been read. `held_out` and `rescoring` are facts for its
    report.
    """

    def __init__(
        self,
        forest: Forest,
        config: TrainingConfig,
        words: Words,
        pool: Pool,
        scheduler: str | None,
        stages: Stages,
        gold: int | None,
    ) -> None:
        self._forest, self._config, self._words = forest, config, words
        self._gold, self._pool, self._workers = gold, pool, pool.workers
        self._scheduler, self._stages = scheduler, stages
        self.held_out: Facts = {}
        self.rescoring: Facts = {}

    def model(self, folder: Path) -> _Learned:
        """Learn the model. Charts of its rescoring layer are spilled into a folder."""
        held = held_out(self._forest, self._config.held_out, self._gold)
        rehearses = bool(held.any()) and not self._config.chooses_steps
        trees = np.arange(len(held)) if rehearses else np.flatnonzero(~held)
        layers = self._layers(trees, folder)
        if layers is not None and rehearses:
            return self._rehearsed(layers)
        if layers is None and rehearses and held.sum() > SPARED * len(held):
            return self._twice(part_of(self._forest, np.flatnonzero(~held)), np.flatnonzero(held))
        return self._held_apart(held, layers)

    def _held_apart(self, marked: Bools, layers: LayerTraining | None) -> _Learned:
        """Learn a model from all trees but those held out, which tell how sure it may be."""
        config, forest, stages = self._config, self._forest, self._stages
        trees = restored(forest, np.flatnonzero(marked)) if marked.any() else ()
        learned = part_of(forest, np.flatnonzero(~marked)) if trees else forest
        examples, model, facts = self._learned(learned, trees, stages)
        held = HeldOut(trees, model, self._workers)
        model = replace(model, weights=held.weights(model.members, stages) if trees else ())
        if layers is not None:
            layers.add_folds(partial(_learned_fold, config, model.weights))
            model = replace(model, rescoring=layers.layer())
        if trees:
            others = self._unfamiliar(layers, model.weights)
            model, self.held_out = _calibrated(model, held, others, stages)
        return _Learned(examples, model, facts)

    def _twice(self, part: Forest, held: Longs) -> _Learned:
        """Learn a model from a part of the trees, which those held out tell how sure it may be,
        and one from all trees beside that, whose tagger goes on from that of the part.
        """
        config, stages, share = self._config, self._stages, max(self._workers // 2, 1)
        apart = stages.apart()
        with ThreadPoolExecutor(1) as here:
            learning = self._pool.submit(_untagged, part, config, share, self._scheduler, apart)
            tagging = here.submit(_tagging, part, config, stages)
            final = here.submit(self._learned_on, tagging, share, stages.under("all trees"))
            model = _tagged(_recorded(learning, stages), tagging.result())
            if self._workers == 1:
                final.result()
            unseen = part_of(self._forest, held)
            maps = self._pool.submit(_maps_of_unseen, model, unseen, share, stages.apart())
            found, self.held_out = _recorded(maps, stages)
        examples, model, facts = final.result()
        return _Learned(examples, replace(model, **found), facts)

    def _learned_on(
        self, tagging: "Future[tagger.Reached | None]", workers: int, stages: Stages
    ) -> _Learned:
        """Learn a model from all trees, whose tagger goes on from that of a part."""
        return _learned(
            self._forest, self._config, (), workers, self._scheduler, stages, tagging.result()
        )

    def _rehearsed(self, layers: LayerTraining) -> _Learned:
        """Learn a model from all trees. One that has not seen the last fold tells how sure it may
        be.
        """
        config, forest, stages = self._config, self._forest, self._stages
        unseen = layers.last_fold
        parsed = spread(unseen, forest.source[unseen], REHEARSED)
        rest = part_of(forest, np.setdiff1d(np.arange(forest.n_trees), unseen))
        rehearsal = self._learned(rest, (), stages.under("rehearsal")).model
        held = HeldOut(restored(forest, parsed), rehearsal, self._workers)
        rehearsal = replace(rehearsal, weights=held.weights(rehearsal.members, stages))
        layers.add_folds(partial(_learned_fold, config, rehearsal.weights), rehearsal)
        rehearsal = replace(rehearsal, rescoring=layers.layer(but_last=True))
        others = self._unfamiliar(layers, rehearsal.weights)
        examples, model, facts = self._learned(forest, (), stages)
        rehearsal, self.held_out = _calibrated(rehearsal, held, others, stages)
        model = replace(model, **_maps_of(rehearsal), rescoring=layers.layer())
        return _Learned(examples, model, facts)

    def _unfamiliar(
        self, layers: LayerTraining | None, weights: tuple[float, ...]
    ) -> Sequence[Parsed]:
        """Learn models that each lack a kind of text, to parse trees of this kind.

        They tell how sure a model may be on texts unlike the treebanks'.
        """
        settings, forest = self._config.rescoring, self._forest
        if layers is None or settings is None:
            return ()
        found = []
        for kind in settings.unfamiliar:
            trees, stages = layers.of_kind(kind), self._stages.under(f"without {kind}")
            rest = part_of(forest, np.setdiff1d(np.arange(forest.n_trees), trees))
            model = self._learned(rest, (), stages).model
            layer = layers.layer_without(trees, stages)
            sample = spread(trees, forest.source[trees], REHEARSED)
            model = replace(model, weights=weights, rescoring=layer)
            found.append(Parsed(model, restored(forest, sample)))
        return found

    def _learned(self, forest: Forest, held: Sequence[Tree], stages: Stages) -> _Learned:
        return _learned(forest, self._config, held, self._workers, self._scheduler, stages)

    def _layers(self, trees: Longs, folder: Path) -> LayerTraining | None:
        """Prepare to learn the layer from these trees; return None if there is to be no layer."""
        settings, config, forest = self._config.rescoring, self._config, self._forest
        if settings is None:
            return None
        gold = trees if self._gold is None else trees[forest.source[trees] < self._gold]
        if len(gold) < FEWEST:
            self.rescoring = {
                "left_out": f"{len(gold)} trees are too few to learn a rescoring layer from: it "
                f"takes {FEWEST}"
            }
            return None
        words = self._words
        vectors = words.vectors or self._learned_vectors(part_of(forest, trees), settings)
        start = words.layer if fits(words.layer, settings.width) else None
        self.rescoring = {
            "trees": len(gold),
            "words": len(vectors.words),
            "vectors_from": words.model
            or ("the treebank and texts" if words.texts else "the treebank"),
        }
        if start is not None:
            self.rescoring["begins_with"] = words.model
        return LayerTraining(
            forest,
            trees,
            gold,
            settings,
            vectors,
            start,
            folder,
            emphasis=config.emphasis,
            seed=config.seed,
            workers=self._workers,
            stages=self._stages,
        )

    def _learned_vectors(self, forest: Forest, settings: RescoringSettings) -> WordVectors:
        with self._stages.stage("words") as stage:
            return learn_vectors(
                forest,
                self._words.texts,
                settings,
                seed=self._config.seed,
                threads=self._workers,
                stage=stage,
            )


def _calibrated(
    model: Model, held: HeldOut, others: Sequence[Parsed], stages: Stages
) -> tuple[Model, Facts]:
    """Add maps of the model's posteriors, with and without the layer, and of its surprise.

    Other models have trees that count as well. Also return facts about these maps.
    """
    plain, *plain_others = (
        one._replace(model=replace(one.model, rescoring=None))
        for one in (Parsed(model, held.trees), *others)
    )
    maps = held.calibration(plain.model, stages, plain_others)
    model = replace(model, calibration=maps.common.kept)
    facts: dict[str, object] = {
        "trees": len(held.trees),
        "weights": model.weights,
        "raw_calibration": maps.raw.as_dict(),
        "map": maps.common.as_dict(),
    }
    if others:
        facts["unfamiliar_trees"] = sum(len(one.trees) for one in others)
    if model.rescoring is not None:
        maps = held.calibration(model, stages.under("rescored"), others)
        model = replace(model, rescored_calibration=maps.common.kept, kind_calibrations=maps.kept)
        facts["rescored_raw_calibration"] = maps.raw.as_dict()
        facts["rescored_map"] = maps.common.as_dict()
        facts["rescored_maps_of_kinds"] = {
            kind or "none": one.as_dict() for kind, one in maps.kinds.items()
        }
    return replace(model, usual=maps.usual), facts


def _maps_of(model: Model) -> dict[str, Any]:
    """Return what a model has learned from trees that it had not seen, by its fields."""
    names = ("weights", "calibration", "rescored_calibration", "kind_calibrations", "usual")
    return {name: getattr(model, name) for name in names}


# Work for a process beside this one ---------------------------------------------------------------

T = TypeVar("T")
Apart = tuple[T, list[StageRecord]]


def _recorded(work: "Future[Apart[T]]", stages: Stages) -> T:
    """Wait for work, and add the records of its stages to these."""
    result, records = work.result()
    stages.records += records
    return result


def _untagged(
    forest: Forest, config: TrainingConfig, workers: int, scheduler: str | None, stages: Stages
) -> Apart[Model]:
    """Learn a model without calibration and tagger."""
    config = replace(config, tagger=False)
    return _learned(forest, config, (), workers, scheduler, stages).model, stages.records


def _maps_of_unseen(
    model: Model, unseen: Forest, workers: int, stages: Stages
) -> Apart[tuple[dict[str, Any], Facts]]:
    """Learn from trees that a model has not seen how sure it may be."""
    held = HeldOut(restored(unseen, np.arange(unseen.n_trees)), model, workers)
    model = replace(model, weights=held.weights(model.members, stages))
    model, facts = _calibrated(model, held, (), stages)
    return (_maps_of(model), facts), stages.records


# Learning -----------------------------------------------------------------------------------------


def _learned_fold(config: TrainingConfig, weights: tuple[float, ...], forest: Forest) -> Model:
    """Learn a model like the final one from a part of the trees, in one thread."""
    model = _learned(forest, config, (), 1, None, Stages()).model
    return replace(model, weights=weights)


def _learned(
    forest: Forest,
    config: TrainingConfig,
    held_out: Sequence[Tree],
    workers: int,
    scheduler: str | None,
    stages: Stages,
    before: tagger.Reached | None = None,
) -> _Learned:
    """Learn a model from a forest, without calibration. Its tagger may go on from another one."""
    with stages.stage("grammar and lexicon"):
        weighted = _emphasized(forest, config.emphasis)
        lexicon = lexicon_of(
            weighted, rare_threshold=config.rare_threshold, language=config.language
        )
        examples = Examples.of(weighted, lexicon)
        model = _coarse_model(examples, lexicon, unmarked(weighted), config)
    with ThreadPoolExecutor(1) as beside:
        learning = beside.submit(_tagging, forest, config, stages, before)
        if workers == 1:
            learning.result()

        choose = None
        at_once = workers if scheduler is None else 1
        if held_out and config.chooses_steps:
            tagged = _tagged(model, learning.result())
            choose = HeldOut(held_out, tagged, at_once).f1
        members, facts = _members(examples, config, choose, at_once, scheduler, stages)
    model = _tagged(replace(model, members=members), learning.result())
    return _Learned(examples, model, facts)


def _tagged(model: Model, tagging: tagger.Reached | None) -> Model:
    return model if tagging is None else replace(model, tagger=tagging.model())


def _emphasized(forest: Forest, emphasis: Sequence[int]) -> Forest:
    """Repeat the trees of each source as often as its emphasis says."""
    if not emphasis:
        return forest
    return part_of(forest, np.repeat(np.arange(forest.n_trees), times_of(forest, emphasis)))


def _coarse_model(
    examples: Examples, lexicon: Lexicon, plain: Forest, config: TrainingConfig
) -> Model:
    """Build the model of counts alone, without members."""
    return Model(
        grammar=examples.grammar,
        lexicon=lexicon,
        coarse=counts.estimate(examples),
        context=context.estimate(examples.forest),
        fallback=_fallback(plain, examples.grammar) if config.horizontal else None,
        horizontal=config.horizontal,
    )


def _fallback(plain: Forest, grammar: Grammar) -> Fallback:
    other = fallback_grammar(grammar, plain.symbols[: plain.n_internal], rules_of(plain))
    coarse = counts.relative_frequencies(plain, other, node_rules(plain, other))
    return Fallback(other, coarse, context.estimate(plain))


def _tagging(
    forest: Forest,
    config: TrainingConfig,
    stages: Stages,
    before: tagger.Reached | None = None,
) -> tagger.Reached | None:
    if not config.tagger or config.rare_threshold == 0:
        return None
    weighted = _emphasized(forest, config.emphasis)
    with stages.stage("tagger") as stage:
        classes = None if config.word_classes is None else tagger.read_classes(config.word_classes)
        return tagger.reach(weighted, seed=config.seed, stage=stage, classes=classes, before=before)


def _members(
    examples: Examples,
    config: TrainingConfig,
    choose: Choose | None,
    workers: int,
    scheduler: str | None,
    stages: Stages,
) -> tuple[tuple[Tables, ...], list[Facts]]:
    """Estimate the members' tables and facts. There are none if the model is counts alone."""
    alone = len(config.members) == 1
    jobs = [
        Job(
            examples=examples,
            seed=seed,
            workers=workers,
            stages=stages if alone else stages.under(f"member {k}"),
            choose=choose,
        )
        for k, seed in enumerate(config.seeds(), start=1)
    ]
    learned = map_members(jobs, config.members, scheduler)
    facts = [told for _, told in learned]
    if [member.estimator for member in config.members] == ["counts"]:
        return (), facts
    return tuple(tables for tables, _ in learned), facts


Gold = Sequence[tuple[str, Sequence[Tree]]]
"""Trees to evaluate on, file by file, with the files' names."""


def _gold(dev: Sources, config: TrainingConfig, stages: Stages) -> Gold:
    with stages.stage("read dev") as stage:
        gold = [(_short(source), _normal(source, config)) for source in listed(dev)]
        stage.advance(sum(len(part) for _, part in gold))
    return gold


def _on_dev(
    gold: Gold,
    model: Model,
    examples: Examples,
    config: TrainingConfig,
    workers: int,
    stages: Stages,
) -> Facts:
    """Evaluate the model as it will be stored on dev files, with untagged words.

    Also count what dev files have and training has not.
    """
    trees = [tree for _, part in gold for tree in part]
    facts = unseen(forest_of(map(binarize, trees)), unmarked(examples.forest))
    parser = Parser(from_bundle(to_bundle(model, facts={}, card="", exact=config.exact)))
    found = []
    with stages.stage("evaluate on dev", len(trees)) as stage:
        for _, part in gold:
            found.append(examine(parser, part, workers=workers))
            stage.advance(len(part))
    parts = [
        {"source": source, **_figures(part, examined)}
        for (source, part), examined in zip(gold, found, strict=True)
    ]
    return {**facts, **_figures(trees, Examined.joined(found)), "parts": parts}


def _figures(gold: Sequence[Tree], found: Examined) -> Facts:
    return {**found.against(gold).as_dict(), **calibration_facts(found)}


def _normal(source: Source, config: TrainingConfig) -> list[Tree]:
    return list(read_normalized(source, max_depth=config.max_depth))


def _short(source: Source) -> str:
    """Shorten a path to the file's and its folder's name: `craft/dev.mrg`."""
    return "/".join(Path(str(source)).parts[-2:])
