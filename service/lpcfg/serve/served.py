"""The served models: verified and warmed before the first answer, and replaced in one step."""

import asyncio
import gc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import structlog

from lpcfg.base.errors import InputError, SettingsError, StoreError
from lpcfg.base.jit import when_compiling
from lpcfg.engine.warmup import BackgroundCompiler
from lpcfg.kinds.registry import AnyKind, AnyLoaded, load_model
from lpcfg.protocol.schemas import ModelDetails
from lpcfg.serve.http.problems import Refused
from lpcfg.serve.memory import give_back
from lpcfg.store.versions import Reference, locate, resolve, versions

_SOON = 2.0  # seconds after which a client may ask a starting service again
_log = structlog.get_logger("lpcfg.web")

T = TypeVar("T")
DEPENDENCIES = "en-dep"
"""The dependency model that is served where none is named, if the store or the package has it."""
NEWEST = "newest"
"""Stands for a version's number: the highest there is."""
_SETTINGS = {"dependencies": "LPCFG_DEPENDENCIES", "tags": "LPCFG_TAGGER"}
"""The settings that add a model of a kind; LPCFG_MODELS adds models of all kinds."""


def starting() -> Refused:
    """Return the refusal of a request that came before the models were ready."""
    return Refused(
        "starting",
        "expected every model to be ready, got one still loading: try again shortly",
        retry_after=_SOON,
    )


def version_of(model: AnyLoaded) -> dict[str, Any]:
    """Return the name, version and hash that every answer contains."""
    one = model.reference
    return {"name": one.name, "version": one.version, "hash": one.hash}


def ready(reference: str, store: str, only: str | None) -> AnyLoaded:
    """Load a model, of this kind if one is named, and let it answer a few sentences."""
    model = load_model(reference, store, only=only)
    model.kind.warm(model.predictor)
    return model


@dataclass(eq=False)
class Slot:
    """One model of a service: which version is wanted, and the one that is served.

    `only` is the kind it must have, if any. `pinned` is the number of the only version wanted;
    without it, the newest one is.
    """

    name: str
    store: str
    only: str | None = None
    pinned: int | None = None
    model: AnyLoaded | None = None
    refused: int | None = None
    """The version that was wanted last and could not be loaded, if so."""

    @classmethod
    def of(cls, reference: str, store: str, only: str | None = None) -> "Slot":
        """Find the model in its store. Raise StoreError if there is none."""
        home, name, number = locate(reference, store)
        return cls(name, home, only, number if "@" in reference or "/" in reference else None)

    @property
    def reference(self) -> Reference | None:
        """The version that is served; None while none is loaded."""
        return None if self.model is None else self.model.reference

    def start(self, *, fall_back: bool = True) -> None:
        """Load the version that is wanted. If the newest cannot be used, fall back to an older."""
        numbers = versions(self.name, self.store) if self.pinned is None else [self.pinned]
        if not fall_back:
            del numbers[1:]
        for number in numbers:
            try:
                self._take(number)
            except StoreError:
                if number == numbers[-1]:
                    raise
            else:
                break
        if number != numbers[0]:
            self.refused = numbers[0]

    def replace(self, wanted: int | Literal["newest"] | None) -> None:
        """Serve another version: this one, the newest, or (None) what was wanted before.

        If it cannot be loaded, raise StoreError and go on as before.
        """
        pinned = self.pinned if wanted is None else wanted
        number = versions(self.name, self.store)[0] if pinned in (None, NEWEST) else int(pinned)
        if resolve(f"{self.name}@{number}", self.store) != self.reference:
            self.refused = number
            self._take(number)
        self.refused = None
        self.pinned = None if pinned in (None, NEWEST) else number

    def _take(self, number: int) -> None:
        """Load this version and put it in the place of the one before. Log both outcomes."""
        name = f"{self.name}@{number}"
        try:
            self.model = ready(name, self.store, self.only)
        except StoreError as error:
            _log.error("model refused", model=name, reason=str(error), served=str(self.reference))
            raise
        _log.info("model", model=name, hash=self.model.reference.hash)


class Models:
    """Models of all kinds, by name. The first one of a kind is its default."""

    def __init__(
        self,
        references: Iterable[str],
        store: str,
        dependencies: str | None = None,
        tagger: str | None = None,
    ) -> None:
        """Check that the models exist, which is quick. `load` makes them ready."""
        self._slots: list[Slot] = []
        for reference in references:
            self._add(Slot.of(reference, store))
        if dependencies is not None:
            self._add(Slot.of(dependencies, store, "dependencies"))
        elif DEPENDENCIES not in [slot.name for slot in self._slots]:
            with suppress(StoreError):  # there is none
                self._add(Slot.of(DEPENDENCIES, store, "dependencies"))
        if tagger is not None:
            self._add(Slot.of(tagger, store, "tags"))
        # Loads follow one another on one thread, so the memory of one serves the next.
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._last: Future[Any] | None = None

    def _add(self, slot: Slot) -> None:
        if slot.name in [one.name for one in self._slots]:
            raise SettingsError(
                f"expected models of different names, got {slot.name} twice: serve each with a "
                "process of its own"
            )
        self._slots.append(slot)

    @property
    def ready(self) -> bool:
        """True once every model is loaded."""
        return all(slot.model is not None for slot in self._slots)

    @property
    def busy(self) -> bool:
        """True while a model is being loaded, even if nobody waits for it any more."""
        return self._last is not None and not self._last.done()

    def __iter__(self) -> Iterator[AnyLoaded]:
        return (slot.model for slot in self._slots if slot.model is not None)

    @property
    def references(self) -> list[Reference]:
        """The versions that are served."""
        return [model.reference for model in self]

    @property
    def refused(self) -> list[tuple[str, int]]:
        """The versions that are wanted and could not be loaded: names and numbers."""
        return [(slot.name, slot.refused) for slot in self._slots if slot.refused is not None]

    async def run(self, work: Callable[[], T]) -> T:
        """Do this on the thread that loads models, when its turn comes."""
        self._last = running = self._loader.submit(work)
        return await asyncio.wrap_future(running)

    async def load(self, *, fall_back: bool = True) -> None:
        """Load every model. At a first start, another process compiles meanwhile what the models
        need that settings of their own have added.
        """
        beside = BackgroundCompiler()
        added = [slot for slot in self._slots if slot.only is not None]

        def begin() -> None:
            if added:
                beside.begin(partial(_compile, [(one.name, one.store, one.only) for one in added]))

        with when_compiling(begin):
            for slot in self._slots:
                if slot.only is None:
                    await self.run(partial(slot.start, fall_back=fall_back))
        await self.run(beside.wait)
        for slot in added:
            await self.run(partial(slot.start, fall_back=fall_back))
        await self.run(_tidy)

    def close(self) -> None:
        """Begin no other load."""
        self._loader.shutdown(wait=False, cancel_futures=True)

    async def reload(self, name: str, version: int | Literal["newest"] | None = None) -> Reference:
        """Serve another version of a model: see `Slot.replace`. Reloads wait for one another.

        Requests in progress are answered by the version they began with.
        """
        slot = next((slot for slot in self._slots if slot.name == name), None)
        if slot is None or slot.reference is None:
            names = ", ".join(one.name for one in self._slots)
            raise Refused(
                "not-found",
                f"expected one of the models {names}, got {name!r}: name one of them",
            )
        await self.run(partial(slot.replace, version))
        await self.run(_tidy)
        return slot.reference

    async def reload_all(self) -> None:
        """Serve the newest version of every model that is not pinned. Refused ones are logged."""
        for slot in self._slots:
            with suppress(StoreError):
                await self.reload(slot.name)

    def at(self, name: str) -> AnyLoaded:
        """Return the model with the name in a path."""
        if any(slot.name == name and slot.model is None for slot in self._slots):
            raise starting()
        try:
            return self.named(name)
        except InputError as error:
            raise Refused("not-found", str(error)) from error

    def named(self, name: str | None, kind: AnyKind | None = None) -> AnyLoaded:
        """Return the model with this NAME or NAME@VERSION, or the first; of this kind, if given."""
        loaded = [slot.model for slot in self._slots if slot.model is not None]
        models = [one for one in loaded if kind is None or one.kind is kind]
        if kind is not None and not models:
            setting = _SETTINGS.get(kind.name, "LPCFG_MODELS")
            raise Refused(
                "not-found",
                f"expected a service with a {kind.title}, got one without: start it with {setting} "
                "set to the name of one in its store",
            )
        if name is None:
            return models[0]
        bare, _, version = name.partition("@")
        found = next((one for one in models if one.reference.name == bare), None)
        if found is None:
            raise InputError(
                f"expected one of the models {', '.join(one.reference.name for one in models)}, "
                f"got {name!r}: name one of them, or none for the first",
                pointer="/model",
            )
        if version not in ("", str(found.reference.version)):
            raise InputError(
                f"expected version {found.reference.version} of {bare}, which is served, got "
                f"{name!r}: leave the version out, or name that one",
                pointer="/model",
            )
        return found

    def described(self, model: AnyLoaded) -> ModelDetails:
        """Describe a model as its endpoint does."""
        return ModelDetails(
            **version_of(model),
            kind=model.kind.name,
            default=self.named(None, model.kind) is model,
            **model.kind.facts(model.predictor),
            facts=dict(model.facts),
        )


def _compile(models: list[tuple[str, str, str | None]]) -> None:
    """Make models ready in another process, for what is compiled then and kept."""
    for one in models:
        ready(*one)


def _tidy() -> None:
    """Give the memory of the model before back to the system."""
    gc.collect()
    gc.freeze()  # models live long: the collector can skip them
    give_back()
