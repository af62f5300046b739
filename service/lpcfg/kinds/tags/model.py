"""Store tagging models: they are models over right-branching trees, of a kind of their own."""

from collections.abc import Mapping
from dataclasses import replace

from lpcfg.base.errors import GrammarError
from lpcfg.kinds.constituency import model as models
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.tags.kernel import rules_of
from lpcfg.store.files import Bundle
from lpcfg.store.parts import Parts
from lpcfg.store.versions import Stored

KIND = "tags"
"""The `kind` of these models in the facts of a manifest."""


def to_bundle(model: Model, *, facts: Mapping[str, object], card: str) -> Bundle:
    """Build the stored form of a tagging model."""
    bundle = models.to_bundle(model, facts={"kind": KIND, **facts}, card=card)
    return replace(bundle, grammar={"kind": KIND, **bundle.grammar})


def from_bundle(stored: Stored | Bundle) -> Model:
    """Return the model that was stored. Raise StoreError if it is not one."""
    parts = Parts.of(stored)
    parts.check_kind(KIND, "a model that `lpcfg tag train` made")
    described = {name: value for name, value in stored.grammar.items() if name != "kind"}
    model = models.from_bundle(replace(stored, grammar=described))
    try:
        rules_of(model.grammar)
    except GrammarError as error:
        raise parts.refused("rules", "rules of right-branching trees", error) from error
    return model
