"""Every estimator by its name. A new one is a line in `ESTIMATORS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, Protocol

from lpcfg.errors import TrainingError
from lpcfg.grammar.tables import Grammar, Tables
from lpcfg.train.data.examples import Examples
from lpcfg.train.estimators import clustering, em, pivot, spectral
from lpcfg.train.estimators import pcfg as counts
from lpcfg.train.stages import Stages

Facts = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Job:
    """What an estimator learns from, and what it may use for that.

    `choose` tells how good tables are, where there are trees to tell it by.
    """

    examples: Examples
    seed: int
    workers: int
    stages: Stages
    choose: em.Choose | None = None


@dataclass(frozen=True)
class CountsSettings:
    """Relative frequencies have nothing to set."""


@dataclass(frozen=True)
class Estimator:
    """`settings` is a frozen dataclass; `estimate` makes tables, and facts for the manifest."""

    settings: type[Any]
    estimate: Callable[[Job, Any], tuple[Tables, Facts]]


class Report(Protocol):
    """What an estimator says of what it learned."""

    def facts(self, grammar: Grammar) -> dict[str, object]:
        """The report for a manifest."""


class Learner(Protocol):
    """The shape that estimators have; some choose among tables and have an argument for that."""

    def __call__(
        self,
        examples: Examples,
        config: Any,
        *,
        seed: int,
        workers: int,
        stages: Stages,
    ) -> tuple[Tables, Report]: ...


def _by(learn: Learner) -> Callable[[Job, Any], tuple[Tables, Facts]]:
    def estimate(job: Job, settings: Any) -> tuple[Tables, Facts]:
        tables, report = learn(
            job.examples,
            settings,
            seed=job.seed,
            workers=job.workers,
            stages=job.stages,
        )
        return tables, report.facts(job.examples.grammar)

    return estimate


def _choosing(
    learn: Callable[..., tuple[Tables, Report]],
) -> Callable[[Job, Any], tuple[Tables, Facts]]:
    def estimate(job: Job, settings: Any) -> tuple[Tables, Facts]:
        return _by(partial(learn, choose=job.choose))(job, settings)

    return estimate


def _counts(job: Job, settings: CountsSettings) -> tuple[Tables, Facts]:
    del settings
    return counts.estimate(job.examples), {}


ESTIMATORS: Mapping[str, Estimator] = {
    "counts": Estimator(CountsSettings, _counts),
    "spectral": Estimator(spectral.SpectralConfig, _by(spectral.estimate)),
    "clustering": Estimator(clustering.ClusteringConfig, _by(clustering.estimate)),
    "clustering+em": Estimator(clustering.ClusteringEmConfig, _choosing(clustering.estimate_em)),
    "em": Estimator(em.EmConfig, _choosing(em.estimate)),
    "pivot": Estimator(pivot.PivotConfig, _by(pivot.estimate)),
    "pivot+em": Estimator(pivot.PivotEmConfig, _choosing(pivot.estimate_em)),
}


def estimator(name: str) -> Estimator:
    """The estimator of a name."""
    if name not in ESTIMATORS:
        known = ", ".join(ESTIMATORS)
        raise TrainingError(
            f"expected an estimator among {known}, got {name!r}{did_you_mean(name, ESTIMATORS)}"
        )
    return ESTIMATORS[name]


def did_you_mean(name: str, known: Mapping[str, object]) -> str:
    """The cure for a name that is not known."""
    close = get_close_matches(name, known, n=1)
    if close:
        return f": did you mean `{close[0]}`?"
    return ": use one of them" if known else ": remove it"
