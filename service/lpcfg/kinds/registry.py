"""The kinds of models there are, and how a stored model finds its own.

Kinds are imported when they are asked for, so that a command loads what it needs alone.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpcfg.base.errors import InputError, StoreError
from lpcfg.kinds.kind import Kind, Loaded

if TYPE_CHECKING:
    from lpcfg.store.versions import Stored

KINDS = {
    "constituency": "lpcfg.kinds.constituency.kind:Constituency",
    "dependencies": "lpcfg.kinds.dependencies.kind:Dependencies",
    "tags": "lpcfg.kinds.tags.kind:Tagging",
}
"""A line for each kind: its name in manifests, its module and its class."""
AnyKind = Kind[Any, Any, Any]
AnyLoaded = Loaded[Any, Any, Any]


def kind_named(name: str) -> AnyKind:
    """Return the kind with this name in manifests."""
    if name not in KINDS:
        raise StoreError(
            f"expected a kind of model among {', '.join(KINDS)}, found {name!r}: use the version "
            "of lpcfg that published the model, or publish it again"
        )
    return _made(KINDS[name])


@cache
def _made(place: str) -> AnyKind:
    module, _, name = place.partition(":")
    found: AnyKind = getattr(import_module(module), name)()
    return found


def all_kinds() -> list[AnyKind]:
    """Return every kind, in the order of their lines."""
    return [kind_named(name) for name in KINDS]


def kind_of(facts: Mapping[str, Any]) -> AnyKind:
    """Return the kind of a model by the facts of its manifest: of constituents without one."""
    return kind_named(str(facts.get("kind", "constituency")))


def find_kind(reference: str, *stores: str | Path, only: str | None = None) -> AnyKind:
    """Tell the kind of the model that `load_model` would load, and refuse it as that does."""
    from lpcfg.store.versions import facts_of

    kind = kind_of(facts_of(reference, *stores))
    if only is not None and kind.name != only:
        raise InputError(
            f"expected a {kind_named(only).title}, got {reference}, a {kind.title}: name another "
            "model, or use `lpcfg parse`, which takes every kind"
        )
    return kind


def load_model(reference: str, *stores: str | Path, only: str | None = None) -> AnyLoaded:
    """Load and verify a stored model of any kind, and make what answers.

    Args:
        reference: NAME, NAME@VERSION or the path of a version's folder
        stores: folders or URLs where names are looked for, before the models of the package
        only: the name of the only kind that will do

    Raises:
        StoreError: for a version that is missing or damaged
        InputError: for a model of another kind than `only`
    """
    from lpcfg.store.versions import load

    kind = find_kind(reference, *stores, only=only)
    with ThreadPoolExecutor(1) as beside:
        loading = beside.submit(load, reference, *stores)
        kind.prepare()
        return loaded(loading.result())


def loaded(stored: "Stored") -> AnyLoaded:
    """Make what answers by a stored model."""
    facts: Any = stored.manifest["facts"]
    kind = kind_of(facts)
    return Loaded(kind, kind.load(stored), stored.reference, facts)
