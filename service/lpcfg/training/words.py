"""Find the vectors of words that a rescoring layer is learned with."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lpcfg.base.errors import TrainingError
from lpcfg.engine.rescoring.layer import Layer, WordVectors
from lpcfg.kinds.constituency.model import from_bundle
from lpcfg.store.versions import exists, load
from lpcfg.training.config import TrainingConfig

OWN = "none"
"""Stands for a model's name where the treebank's own words are wanted."""


@dataclass(frozen=True, eq=False)
class VectorSource:
    """The source of word vectors for the rescoring layer.

    It is the layer of another model with its name, with whose hidden part the new one begins as
    well, or files of raw text to learn them from together with the treebank's own words.
    """

    texts: Sequence[Path] = ()
    layer: Layer | None = None
    model: str = ""

    @property
    def vectors(self) -> WordVectors | None:
        """The vectors of the other model."""
        return None if self.layer is None else self.layer.vectors


def words_of(
    config: TrainingConfig,
    stores: Sequence[str],
    default: str,
    *,
    texts: Sequence[Path] = (),
    model: str | None = None,
) -> VectorSource:
    """Choose where word vectors come from.

    Args:
        config: which says whether there is a layer, and the language.
        stores: of which the first that has the model is taken, or else the package.
        default: the model that English takes them from, if there is one. Otherwise they come from
            the treebank's own words.
        texts: files of raw text to learn them from.
        model: a model to take them from, or OWN for the treebank's own words.

    Raises:
        TrainingError: if the named model has none.
    """
    if config.rescoring is None or texts or model == OWN:
        return VectorSource(texts=texts)
    if model is None and config.language != "english":
        return VectorSource()
    reference = default if model is None else model
    if model is None and not exists(reference, *stores):
        return VectorSource()
    stored = load(reference, *stores)
    layer = from_bundle(stored).rescoring
    if layer is not None and layer.vectors is not None:
        return VectorSource(layer=layer, model=str(stored.reference))
    if model is None:
        return VectorSource()
    raise TrainingError(
        f"expected a model with vectors of words, got {model}, which has none: name another, or "
        "give raw text"
    )
