"""Tagged sentences → a published tagging model, by any estimator of the package."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lpcfg.base.errors import TrainingError
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.tags.chains import Tagged, chain, read
from lpcfg.kinds.tags.evaluate import TagScores, evaluate
from lpcfg.kinds.tags.model import from_bundle, to_bundle
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.store.versions import Reference, check_publishable
from lpcfg.store.versions import publish as publish_bundle
from lpcfg.text.files import Source
from lpcfg.training import tagger as tag_models
from lpcfg.training.config import Member, member
from lpcfg.training.data import context
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import forest_of, lexicon_of
from lpcfg.training.estimators import pcfg as counts
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.registry import estimator
from lpcfg.training.stages import Progress, Stages, silent

TEMPLATES = (
    "inside:rule",
    "inside:rule-right",
    "inside:first-word",
    "inside:second-word",
    "word:identity",
    "word:ending",
    "outside:rule",
    "outside:rules-2",
    "outside:word-before",
    "outside:word-after",
)
"""Features of a word: itself, its ending, its neighbours, and the tags before and after it."""


@dataclass(frozen=True)
class Config:
    """How a tagging model is learned.

    estimator           a member of the training configuration: an estimator with its settings
    neighbours          also learn the log-linear tagger, which sees two words on either side
    rare_threshold      words seen less often than this share the terminal of their signature
    """

    estimator: Member
    neighbours: bool = True
    rare_threshold: int = 3
    language: str = "english"
    seed: int = 1
    workers: int = 1


def estimator_of(name: str, **settings: object) -> Member:
    """Choose an estimator, with the templates of tagging where it has features."""
    known = {one.name for one in fields(estimator(name).settings)}
    return member(name, **({"templates": TEMPLATES} if "templates" in known else {}), **settings)


def learn(
    sentences: Sequence[Tagged], config: Config, progress: Progress = silent
) -> tuple[Model, dict[str, Any]]:
    """Learn a model, and tell what the estimator reports and how long each stage took."""
    if not sentences:
        raise TrainingError("expected tagged sentences to learn from, got none: give some")
    stages = Stages(progress)
    with stages.stage("grammar and lexicon"):
        forest = forest_of(chain(words, tags) for words, tags in sentences)
        lexicon = lexicon_of(forest, rare_threshold=config.rare_threshold, language=config.language)
        examples = Examples.of(forest, lexicon)
    neighbours = None
    if config.neighbours and config.rare_threshold > 0:
        with stages.stage("tagger") as stage:
            neighbours = tag_models.learn_tagger(forest, seed=config.seed, stage=stage).model()
    inputs = EstimatorInputs(examples, config.seed, config.workers, stages)
    chosen = config.estimator
    tables, facts = estimator(chosen.estimator).estimate(inputs, chosen.settings)
    model = Model(
        grammar=examples.grammar,
        lexicon=lexicon,
        coarse=counts.estimate(examples),
        context=context.estimate(forest),
        members=() if chosen.estimator == "counts" else (tables,),
        tagger=neighbours,
    )
    return model, {
        "config": {
            "estimator": chosen.as_json(),
            "neighbours": config.neighbours,
            "rare_threshold": config.rare_threshold,
            "language": config.language,
            "seed": config.seed,
        },
        "sentences": forest.n_trees,
        "words": int(forest.is_leaf.sum()),
        "fingerprint": forest.fingerprint,
        "reported": dict(facts),
        "stages": [asdict(one) for one in stages.records],
    }


def train_and_publish(
    sources: Source | Sequence[Source],
    config: Config,
    *,
    store: str | Path,
    name: str,
    dev: Mapping[str, Sequence[Tagged]],
    licence: str = "not stated",
    progress: Progress = silent,
) -> tuple[Reference, dict[str, Any], dict[str, TagScores]]:
    """Learn a model, evaluate it as it will be stored, and publish it."""
    check_publishable(store, name)  # fails before the work instead of after it
    model, facts = learn(read(sources), config, progress)
    stored = SequenceTagger(from_bundle(to_bundle(model, facts={}, card="")))
    scores = {file: evaluate(stored, gold) for file, gold in dev.items()}
    facts |= {
        "estimator": config.estimator.estimator,
        "licence": licence,
        "dev": {file: one.as_json() for file, one in scores.items()},
    }
    bundle = to_bundle(model, facts=facts, card=_card(name, facts))
    return publish_bundle(store, name, bundle), facts, scores


def _card(name: str, facts: Mapping[str, Any]) -> str:
    lines = [
        f"# {name}",
        "",
        "A tagger: a hidden Markov model whose tags have latent states, with a probability for "
        "every tag.",
        "",
        f"- Learned from {facts['sentences']:,} sentences, {facts['words']:,} words, by "
        f"{facts['estimator']}.",
        f"- Licence of the treebank: {facts['licence']}.",
        "- Configuration and all figures: `manifest.json`, under `facts`.",
    ]
    for file, scores in facts["dev"].items():
        lines += [
            "",
            f"On {Path(file).parent.name}/{Path(file).name}: {scores['accuracy']:.2f} % of tags "
            f"right, calibration error {scores['calibration_error']:.4f}.",
        ]
    return "\n".join((*lines, ""))
