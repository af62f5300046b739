"""Load a stored model, or train one: the first calls of scripts and notebooks.

Everything is imported when a function is called, so that `import lpcfg` costs nothing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from lpcfg.api.trained import TrainedModel
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.kinds.dependencies.predict import DependencyParser
    from lpcfg.text.files import Source
    from lpcfg.training.config import TrainingConfig
    from lpcfg.training.stages import Progress
    from lpcfg.trees.tree import Tree

    Treebank = Source | Sequence[Source] | Sequence[Tree]


@overload
def load(  # type: ignore[overload-overlap]  # a literal is a string as well
    model: Literal["en-dep"], *, store: str | Path | None = None
) -> "DependencyParser": ...
@overload
def load(model: str = "en", *, store: str | Path | None = None) -> "Parser": ...
def load(model: str = "en", *, store: str | Path | None = None) -> object:
    """Load a stored model of any kind, verify every file of it, and return what answers.

    Args:
        model: NAME for its newest version, NAME@VERSION, or the path of a version's folder
        store: a folder or an fsspec URL; LPCFG_MODEL_STORE where it is not given, else
            `model_store` beside the code or in the current folder. A model that the store does
            not have is looked for among those that came with the package: `en` and `en-dep`

    Returns:
        A parser; of a dependency model a `DependencyParser`, of a tagging model a tagger. All are
        called with text, or with a list of sentences, and answer a list.

    Raises:
        lpcfg.StoreError: for a model that is missing or damaged

    >>> parser = lpcfg.load("en")
    >>> parser.reference.name
    'en'
    >>> (found,) = lpcfg.load("en-dep")("Cats sleep.")
    >>> found.arcs.heads
    (2, 0, 2)
    """
    from lpcfg.api.stores import chosen_store
    from lpcfg.kinds.registry import load_model

    return load_model(model, chosen_store(store)).predictor


def load_dependencies(
    model: str = "en-dep", *, store: str | Path | None = None
) -> "DependencyParser":
    """Load a stored dependency model, as `lpcfg.load` does, and refuse models of other kinds.

    >>> (found,) = lpcfg.load_dependencies()("Cats sleep.")
    >>> found.arcs.heads
    (2, 0, 2)
    """
    from lpcfg.api.stores import chosen_store
    from lpcfg.kinds.registry import load_model

    parser: DependencyParser
    parser = load_model(model, chosen_store(store), only="dependencies").predictor
    return parser


def train(
    treebank: "Treebank",
    estimator: str | None = None,
    *,
    dev: "Treebank | None" = None,
    config: "TrainingConfig | None" = None,
    words: str | None = None,
    workers: int | None = None,
    progress: "Progress | None" = None,
    **settings: object,
) -> "TrainedModel":
    """Learn a model from a treebank.

    treebank    a file or folder of Penn brackets (also .gz), a list of those, or a list of trees
    estimator   spectral, em, pivot, pivot+em, clustering, clustering+em or counts; spectral, as
                `lpcfg train` has it, where neither this nor a configuration says
    dev         trees to evaluate on when all is learned; the scores are in `.report`
    config      everything that can be set, as one value
    words       a stored model whose words' vectors the rescoring layer takes, and whose hidden
                part it begins with; "none" for vectors of the treebank's own words. For English
                it is `en` where nothing is said
    workers     processes; by default one per core. The model is the same whatever their number
    progress    is called with a stage's name, items done, and items in all
    settings    keys of `lpcfg.TrainingConfig` or of the estimator: states=16, seed=3, ...

    >>> trees = [lpcfg.Tree.from_string("(S (NP (NNS Cats)) (VP (VBP sleep)))")] * 20
    >>> model = lpcfg.train(trees, estimator="spectral", states=2)
    >>> print(model.parser().parse([["Cats", "sleep"]])[0])
    (S (NP (NNS Cats)) (VP (VBP sleep)))
    """
    from lpcfg.api.stores import chosen
    from lpcfg.api.trained import TrainedModel, sources_of
    from lpcfg.training.config import TrainingConfig, overridden
    from lpcfg.training.pipeline import train as learn
    from lpcfg.training.stages import silent
    from lpcfg.training.words import words_of

    ours = chosen(threads=workers)
    configuration = overridden(config or TrainingConfig(), {"estimator": estimator, **settings})
    model, report = learn(
        sources_of(treebank),
        configuration,
        dev=None if dev is None else sources_of(dev),
        workers=ours.threads,
        words=words_of(configuration, (ours.store,), ours.model, model=words),
        progress=progress or silent,
    )
    return TrainedModel.of(model, report)
