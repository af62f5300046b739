"""Constituency parsing with latent-variable PCFGs learned by the spectral method.

>>> parser = lpcfg.load("en")
>>> for analysis in parser("The cat sat on the mat."):
...     print(analysis.tree)
(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .))

The names below are all there is to rely on; docs/api.md shows them at work. Each is imported when
it is asked for, so that `import lpcfg` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpcfg.api.functions import load, load_dependencies, train
from lpcfg.base.extras import extra
from lpcfg.base.jit import find_place

if TYPE_CHECKING:
    from lpcfg.api.trained import TrainedModel
    from lpcfg.base.errors import (
        DeadlineError,
        GrammarError,
        InputError,
        LimitError,
        LpcfgError,
        SchedulerError,
        SettingsError,
        Stopped,
        StoreError,
        TrainingError,
        TreebankError,
        WorkerError,
    )
    from lpcfg.client import AsyncClient, Client, ServiceError
    from lpcfg.kinds.constituency.model import Model
    from lpcfg.kinds.constituency.options import ParseOptions
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.kinds.constituency.results import (
        Analyses,
        Analysis,
        Cell,
        Constituent,
        Marginals,
        Parse,
        SpanMarginal,
        Token,
        TreeProbability,
    )
    from lpcfg.kinds.dependencies.arcs import Arcs
    from lpcfg.kinds.dependencies.predict import Attached, DependencyParser, ParsedArcs
    from lpcfg.kinds.sentences import Constraint, Sentence
    from lpcfg.kinds.tags.predict import SequenceTagger, TaggedToken, Tags
    from lpcfg.store.versions import Reference
    from lpcfg.training.config import TrainingConfig
    from lpcfg.training.summary import TrainReport
    from lpcfg.trees.tree import Tree

    __version__: str

__all__ = [
    "Analyses",
    "Analysis",
    "Arcs",
    "AsyncClient",
    "Attached",
    "Cell",
    "Client",
    "Constituent",
    "Constraint",
    "DeadlineError",
    "DependencyParser",
    "GrammarError",
    "InputError",
    "LimitError",
    "LpcfgError",
    "Marginals",
    "Model",
    "Parse",
    "ParseOptions",
    "ParsedArcs",
    "Parser",
    "Reference",
    "SchedulerError",
    "Sentence",
    "SequenceTagger",
    "ServiceError",
    "SettingsError",
    "SpanMarginal",
    "Stopped",
    "StoreError",
    "TaggedToken",
    "Tags",
    "Token",
    "TrainReport",
    "TrainedModel",
    "TrainingConfig",
    "TrainingError",
    "Tree",
    "TreeProbability",
    "TreebankError",
    "WorkerError",
    "__version__",
    "load",
    "load_dependencies",
    "train",
]

find_place()  # before anything imports a kernel

_HOMES = {
    "Analyses": "lpcfg.kinds.constituency.results",
    "Analysis": "lpcfg.kinds.constituency.results",
    "Arcs": "lpcfg.kinds.dependencies.arcs",
    "AsyncClient": "lpcfg.client",
    "Attached": "lpcfg.kinds.dependencies.predict",
    "Cell": "lpcfg.kinds.constituency.results",
    "Client": "lpcfg.client",
    "Constituent": "lpcfg.kinds.constituency.results",
    "Constraint": "lpcfg.kinds.sentences",
    "DependencyParser": "lpcfg.kinds.dependencies.predict",
    "Marginals": "lpcfg.kinds.constituency.results",
    "Model": "lpcfg.kinds.constituency.model",
    "Parse": "lpcfg.kinds.constituency.results",
    "ParseOptions": "lpcfg.kinds.constituency.options",
    "ParsedArcs": "lpcfg.kinds.dependencies.predict",
    "Parser": "lpcfg.kinds.constituency.predict",
    "Reference": "lpcfg.store.versions",
    "Sentence": "lpcfg.kinds.sentences",
    "SequenceTagger": "lpcfg.kinds.tags.predict",
    "ServiceError": "lpcfg.client",
    "SpanMarginal": "lpcfg.kinds.constituency.results",
    "TaggedToken": "lpcfg.kinds.tags.predict",
    "Tags": "lpcfg.kinds.tags.predict",
    "Token": "lpcfg.kinds.constituency.results",
    "TrainReport": "lpcfg.training.summary",
    "TrainedModel": "lpcfg.api.trained",
    "TrainingConfig": "lpcfg.training.config",
    "Tree": "lpcfg.trees.tree",
    "TreeProbability": "lpcfg.kinds.constituency.results",
}
"""The modules of public names; those not listed are in lpcfg.base.errors."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("lpcfg")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("client", "clients of the service"):
        value = getattr(import_module(_HOMES.get(name, "lpcfg.base.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
