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

# The room first: its import sets the name `train` of this package, which is the function after it.
import lpcfg.train  # noqa: F401
from lpcfg.api.functions import load, load_dependencies, train
from lpcfg.compiled import find_place

if TYPE_CHECKING:
    from lpcfg.client import AsyncClient, Client, ServiceError
    from lpcfg.dependencies.parser import DependencyParser
    from lpcfg.errors import (
        DeadlineError,
        GrammarError,
        InputError,
        LimitError,
        LpcfgError,
        SettingsError,
        Stopped,
        StoreError,
        TrainingError,
        TreebankError,
    )
    from lpcfg.models.model import Model
    from lpcfg.parsing.parser import Parser
    from lpcfg.parsing.results import Sentence
    from lpcfg.train.config import TrainingConfig
    from lpcfg.trees.tree import Tree

    __version__: str

__all__ = [
    "AsyncClient",
    "Client",
    "DeadlineError",
    "DependencyParser",
    "GrammarError",
    "InputError",
    "LimitError",
    "LpcfgError",
    "Model",
    "Parser",
    "Sentence",
    "ServiceError",
    "SettingsError",
    "Stopped",
    "StoreError",
    "TrainingConfig",
    "TrainingError",
    "Tree",
    "TreebankError",
    "__version__",
    "load",
    "load_dependencies",
    "train",
]

find_place()  # before anything imports a kernel

_HOMES = {
    "AsyncClient": "lpcfg.client",
    "Client": "lpcfg.client",
    "DependencyParser": "lpcfg.dependencies.parser",
    "ServiceError": "lpcfg.client",
    "Model": "lpcfg.models.model",
    "Parser": "lpcfg.parsing.parser",
    "Sentence": "lpcfg.parsing.results",
    "TrainingConfig": "lpcfg.train.config",
    "Tree": "lpcfg.trees.tree",
}
"""The modules of public names; those not listed are in lpcfg.errors."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("lpcfg")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "lpcfg.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
