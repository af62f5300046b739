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
class Words:
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
) -> Words:
    """Return raw text, the vectors of a named model, or for English those of the default model.

    A model is taken from the first of the stores that has it, or else from the package. Where
    neither has the default model, vectors come from the treebank's own words, as they do for the
    name OWN.
    """
    if config.rescoring is None or texts or model == OWN:
        return Words(texts=texts)
    if model is None and config.language != "english":
        return Words()
    reference = default if model is None else model
    if model is None and not exists(reference, *stores):
        return Words()
    stored = load(reference, *stores)
    layer = from_bundle(stored).rescoring
    if layer is not None and layer.vectors is not None:
        return Words(layer=layer, model=str(stored.reference))
    if model is None:
        return Words()
    raise TrainingError(
        f"expected a model with vectors of words, got {model}, which has none: name another, or "
        "give raw text"
    )
