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
from lpcfg.base.jit import find_place

if TYPE_CHECKING:
    from lpcfg.base.errors import (
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
    from lpcfg.client import AsyncClient, Client, ServiceError
    from lpcfg.kinds.constituency.model import Model
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.kinds.dependencies.predict import DependencyParser
    from lpcfg.kinds.sentences import Sentence
    from lpcfg.training.config import TrainingConfig
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
    "DependencyParser": "lpcfg.kinds.dependencies.predict",
    "ServiceError": "lpcfg.client",
    "Model": "lpcfg.kinds.constituency.model",
    "Parser": "lpcfg.kinds.constituency.predict",
    "Sentence": "lpcfg.kinds.sentences",
    "TrainingConfig": "lpcfg.training.config",
    "Tree": "lpcfg.trees.tree",
}
"""The modules of public names; those not listed are in lpcfg.base.errors."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("lpcfg")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "lpcfg.base.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
