"""Store tagging models: they are models over right-branching trees, of a kind of their own."""

from collections.abc import Mapping
from dataclasses import replace

from lpcfg.errors import GrammarError
from lpcfg.models import model as models
from lpcfg.models.model import Model
from lpcfg.models.store.files import Bundle
from lpcfg.models.store.versions import Stored

KIND = "tags"
"""What the manifest's facts say of a model under `kind`."""


def to_bundle(model: Model, *, facts: Mapping[str, object], card: str) -> Bundle:
    """Build the stored form of a tagging model."""
    bundle = models.to_bundle(model, facts={"kind": KIND, **facts}, card=card)
    return replace(bundle, grammar={"kind": KIND, **bundle.grammar})


def from_bundle(stored: Stored | Bundle) -> Model:
    """Return the model that was stored."""
    described = dict(stored.grammar)
    kind = described.pop("kind", "constituency")
    if kind != KIND:
        raise GrammarError(
            f"expected a model of tags, got one of kind `{kind}`: name a model that "
            "`lpcfg tag train` made, or use the commands for that kind"
        )
    return models.from_bundle(Bundle(stored.tensors, described, {}, ""))
