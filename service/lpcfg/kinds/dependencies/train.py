"""Learn a dependency model from CoNLL-U files, and measure it."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from threadpoolctl import threadpool_limits

from lpcfg.base.errors import TrainingError
from lpcfg.kinds.dependencies import conllu, eisner, learning, spectral
from lpcfg.kinds.dependencies.arcs import Arcs, projectivized
from lpcfg.kinds.dependencies.inputs import Inputs
from lpcfg.kinds.dependencies.learning import Example, NetworkSettings
from lpcfg.kinds.dependencies.model import DependencyModel, SpectralTrees
from lpcfg.kinds.dependencies.network import Parameters
from lpcfg.kinds.dependencies.predict import DependencyParser
from lpcfg.kinds.dependencies.vocabulary import Vocabulary
from lpcfg.words.cca import EigenwordOptions
from lpcfg.words.cca import learn as learn_words
from lpcfg.words.eigenwords import Eigenwords

Progress = Callable[[str, int, int], None]
HELD_OUT = 25
"""Of so many sentences one, from the end, tells how sharp probabilities should be."""
INVERSE_TEMPERATURES: tuple[float, ...] = tuple(k / 20 for k in range(10, 25))
SPECTRAL_STATES = 10
"""k of Algorithm 1, the paper's."""
SPECTRAL_LEAST = 5
"""Rarer words are signatures in Algorithm 1."""


@dataclass(frozen=True)
class Config:
    """The settings of `train`."""

    settings: NetworkSettings = field(default_factory=NetworkSettings)
    members: int = 3
    vectors: int = 30_000
    """The most frequent words that keep their eigenwords"""
    seed: int = 0
    workers: int = 2

    def __post_init__(self) -> None:
        for name in ("members", "vectors", "workers"):
            if getattr(self, name) < 1:
                raise TrainingError(f"expected `{name}` of 1 or more, got {getattr(self, name)}")
        if self.settings.epochs < 1:
            raise TrainingError(f"expected `epochs` of 1 or more, got {self.settings.epochs}")


@dataclass(frozen=True)
class Report:
    """The data that was learned from: counts for the manifest and for people."""

    sentences: int
    words: int
    not_projective: int
    lifted: int
    relations: int
    tags: int
    seconds: dict[str, float] = field(default_factory=dict)


def read(sources: Sequence[str]) -> list[Arcs]:
    """Return the trees of CoNLL-U files; every word needs a head."""
    return [sentence.arcs for sentence in conllu.read(list(sources))]


def train(
    trees: Sequence[Arcs],
    config: Config,
    eigenwords: Eigenwords | None = None,
    on_progress: Progress = lambda _what, _done, _total: None,
) -> tuple[DependencyModel, Report]:
    """Learn a model. Trees that are not projective are lifted first, and counted.

    Without eigenwords, they are learned from the sentences themselves.
    """
    if not trees:
        raise TrainingError("expected dependency trees to learn from, got none: give some")
    clock = _Clock()
    lifted = [projectivized(arcs) for arcs in trees]
    gold = [arcs for arcs, _ in lifted]
    if eigenwords is None:
        sentences = [arcs.words for arcs in gold]
        dimensions = min(50, max(1, len({w.lower() for s in sentences for w in s}) // 4))
        options = EigenwordOptions(dimensions=dimensions, seed=config.seed, threads=config.workers)
        eigenwords = learn_words(sentences, options=options)
    clock.mark("eigenwords")
    model = _coded(gold, eigenwords, config)
    held_out = gold[len(gold) - len(gold) // HELD_OUT :]
    learned = gold[: len(gold) - len(held_out)]
    members = _members(model, learned, config, on_progress)
    model = replace(model, members=members)
    clock.mark("network")
    model = replace(
        model, inverse_temperature=_sharpness(model, held_out), spectral=_spectral(gold)
    )
    clock.mark("inverse temperature and Algorithm 1")
    report = Report(
        len(gold),
        sum(len(arcs.words) for arcs in gold),
        sum(count > 0 for _, count in lifted),
        sum(count for _, count in lifted),
        len(model.relations),
        len(model.tags),
        clock.seconds,
    )
    return model, report


def _coded(gold: Sequence[Arcs], eigenwords: Eigenwords, config: Config) -> DependencyModel:
    """Return the model without its networks: inputs and classes."""
    inputs = Inputs.of((w for arcs in gold for w in arcs.words), eigenwords, config.vectors)
    relations = tuple(sorted({label for arcs in gold for label in arcs.labels}))
    tags = tuple(sorted({tag for arcs in gold for tag in arcs.tags or ("_|_",)}))
    return DependencyModel(inputs, relations, tags, ())


def _members(
    model: DependencyModel, gold: Sequence[Arcs], config: Config, on_progress: Progress
) -> tuple[Parameters, ...]:
    relation = {name: k for k, name in enumerate(model.relations)}
    tag = {name: k for k, name in enumerate(model.tags)}
    examples = [
        Example(
            model.inputs.rows(arcs.words),
            np.array(arcs.heads, np.int64),
            np.array([relation[label] for label in arcs.labels], np.int64),
            np.array([tag[one] for one in arcs.tags or ("_|_",) * len(arcs.words)], np.int64),
        )
        for arcs in gold
    ]

    def one(member: int) -> Parameters:
        def show(epoch: int, loss: float) -> None:
            del loss
            on_progress(f"network {member + 1}", epoch + 1, config.settings.epochs)

        return learning.learn(
            examples,
            model.inputs.sizes(),
            model.inputs.dense,
            (len(relation), len(tag)),
            config.settings,
            seed=config.seed + member,
            on_epoch=show,
        )

    with threadpool_limits(1), ThreadPoolExecutor(config.workers) as pool:
        return tuple(pool.map(one, range(config.members)))


def _sharpness(model: DependencyModel, held_out: Sequence[Arcs]) -> float:
    """Find the factor of scores that makes held-out trees likeliest; 1 if there are none."""
    if not held_out:
        return 1.0
    scores = DependencyParser(model).arc_scores([arcs.words for arcs in held_out])

    def likelihood(inverse_temperature: float) -> float:
        total = 0.0
        for score, arcs in zip(scores, held_out, strict=True):
            gold = score[list(arcs.heads), np.arange(1, len(arcs.words) + 1)].sum()
            total += inverse_temperature * float(gold) - float(
                eisner.inside(inverse_temperature * score)[2]
            )
        return total

    return max(INVERSE_TEMPERATURES, key=likelihood)


def _spectral(gold: Sequence[Arcs]) -> SpectralTrees | None:
    """Learn the operators of Algorithm 1; None if too few words stand between two modifiers."""
    vocabulary = Vocabulary.of((w for arcs in gold for w in arcs.words), SPECTRAL_LEAST)
    try:
        examples = spectral.Examples.of(gold, vocabulary)
        learned = spectral.Representation.learned(examples, len(vocabulary.names), SPECTRAL_STATES)
    except TrainingError:
        return None
    return SpectralTrees(vocabulary, spectral.Operators.estimated(examples, learned))


class _Clock:
    """Wall-clock seconds by stage."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.seconds: dict[str, float] = {}

    def mark(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage] = round(now - self._last, 1)
        self._last = now
