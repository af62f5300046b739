"""The inputs of every estimator, and checks of its settings."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lpcfg.base.errors import TrainingError
from lpcfg.base.executors import Executor
from lpcfg.grammar.tables import Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.stages import Stages

Choose = Callable[[Tables], float]
"""Scores tables by their quality: higher is better."""


@dataclass(frozen=True, eq=False)
class EstimatorInputs:
    """The input of an estimator. The number of workers does not change a byte of its result.

    `choose` scores tables, if there are held-out trees to do so. `executor` makes sums over
    shards of the treebank, for an estimator that `shares`; without it, threads do.
    """

    examples: Examples
    seed: int
    workers: int
    stages: Stages = field(default_factory=Stages)
    choose: Choose | None = None
    executor: Executor | None = None


def check_least(settings: object, **least: int) -> None:
    """Raise TrainingError if a setting is below its least value. None is no value."""
    for name, bound in least.items():
        value = getattr(settings, name)
        if value is not None and value < bound:
            raise TrainingError(f"expected `{name}` of at least {bound}, got {value}: raise it")
