"""Learn an L-PCFG of expanded dependency trees, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Grammar, Tables
from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.kinds.dependencies.expansion import expand
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import forest_of, lexicon_of
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.registry import Facts, estimator
from lpcfg.training.stages import Stages


@dataclass(frozen=True, eq=False)
class Expanded:
    """An L-PCFG of expansions."""

    tables: Tables
    lexicon: Lexicon
    facts: Facts

    @property
    def grammar(self) -> Grammar:
        return self.tables.grammar


def learn(
    trees: Sequence[Arcs],
    name: str = "spectral",
    settings: object = None,
    *,
    rare_threshold: int = 3,
    language: str = "english",
    seed: int = 0,
    workers: int = 1,
) -> Expanded:
    """Learn an L-PCFG of projective dependency trees by any estimator of the package."""
    if not trees:
        raise TrainingError("expected dependency trees to learn from, got none: give some")
    forest = forest_of(map(expand, trees))
    lexicon = lexicon_of(forest, rare_threshold=rare_threshold, language=language)
    chosen = estimator(name)
    inputs = EstimatorInputs(Examples.of(forest, lexicon), seed, workers, Stages())
    tables, facts = chosen.estimate(inputs, chosen.settings() if settings is None else settings)
    return Expanded(tables, lexicon, facts)
