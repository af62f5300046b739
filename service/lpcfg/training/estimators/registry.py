"""All estimators by name. To add one, add a line to `ESTIMATORS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.tables import Grammar, Tables
from lpcfg.training.estimators import clustering, em, pivot, spectral
from lpcfg.training.estimators import pcfg as counts
from lpcfg.training.estimators.inputs import EstimatorInputs

Facts = Mapping[str, object]


@dataclass(frozen=True)
class CountsSettings:
    """The estimator of relative frequencies has no settings."""


@dataclass(frozen=True)
class Estimator:
    """An estimator: `settings` is a frozen dataclass; `estimate` returns tables and a report.

    One that `shares` lets the inputs's executor make its sums.
    """

    settings: type[Any]
    estimate: Callable[[EstimatorInputs, Any], tuple[Tables, Facts]]
    shares: bool = False


class Report(Protocol):
    """A report of an estimator about its result."""

    def facts(self, grammar: Grammar) -> dict[str, object]:
        """Return the report as facts for a manifest."""


def _reported(
    learn: Callable[[EstimatorInputs, Any], tuple[Tables, Report]],
) -> Callable[[EstimatorInputs, Any], tuple[Tables, Facts]]:
    """Return an estimator that tells facts in place of its report."""

    def estimate(inputs: EstimatorInputs, settings: Any) -> tuple[Tables, Facts]:
        tables, report = learn(inputs, settings)
        return tables, report.facts(inputs.examples.grammar)

    return estimate


def _counts(inputs: EstimatorInputs, settings: CountsSettings) -> tuple[Tables, Facts]:
    del settings
    return counts.estimate(inputs.examples), {}


ESTIMATORS: Mapping[str, Estimator] = {
    "counts": Estimator(CountsSettings, _counts),
    "spectral": Estimator(spectral.SpectralConfig, _reported(spectral.estimate), shares=True),
    "clustering": Estimator(clustering.ClusteringConfig, _reported(clustering.estimate)),
    "clustering+em": Estimator(clustering.ClusteringEmConfig, _reported(clustering.estimate_em)),
    "em": Estimator(em.EmConfig, _reported(em.estimate)),
    "pivot": Estimator(pivot.PivotConfig, _reported(pivot.estimate)),
    "pivot+em": Estimator(pivot.PivotEmConfig, _reported(pivot.estimate_em)),
}


def estimator(name: str) -> Estimator:
    """Return the estimator with this name."""
    if name not in ESTIMATORS:
        known = ", ".join(ESTIMATORS)
        raise TrainingError(
            f"expected an estimator among {known}, got {name!r}{did_you_mean(name, ESTIMATORS)}"
        )
    return ESTIMATORS[name]


def did_you_mean(name: str, known: Mapping[str, object]) -> str:
    """Suggest the known name nearest to an unknown one."""
    close = get_close_matches(name, known, n=1)
    if close:
        return f": did you mean `{close[0]}`?"
    return ": use one of them" if known else ": remove it"
