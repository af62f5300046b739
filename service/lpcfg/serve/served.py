"""The served models: verified and warmed before the first answer, and replaced in one step."""

import asyncio
import gc
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, Protocol, TypeVar, cast

import structlog

from lpcfg.base.errors import InputError, SettingsError, StoreError
from lpcfg.base.jit import when_compiling
from lpcfg.engine.objectives import OBJECTIVES
from lpcfg.engine.warmup import BackgroundCompiler
from lpcfg.kinds.constituency.loading import ready
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.readout import Labels
from lpcfg.kinds.dependencies.predict import DependencyParser
from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.protocol.schemas import ModelDetails
from lpcfg.serve.http.problems import Refused
from lpcfg.serve.memory import give_back
from lpcfg.store.versions import Reference, Stored, load, locate, resolve, versions

Other = TypeVar("Other", DependencyParser, SequenceTagger)
"""A parser of another kind of model, which answers in place of the constituency parser."""
_SOON = 2.0  # seconds after which a client may ask a starting service again
_log = structlog.get_logger("lpcfg.web")

# Before a model is ready, every path of the engine runs once, so that no request waits for
# compilation: a word, a clause, a long sentence, and tokens that no grammar joins.
_WARMING = (
    ("Yes",),
    ("The", "cat", "sat", "on", "the", "mat", "."),
    ("The", "cat", "that", "the", "dog", "chased", "sat", "on", "the", "old", "mat", "."),
    (")", "(", ")"),
)


def starting() -> Refused:
    """Return the refusal of a request that came before the models were ready."""
    return Refused(
        "starting",
        "expected every model to be ready, got one still loading: try again shortly",
        retry_after=_SOON,
    )


class Loaded(Protocol):
    """A model that can answer; its reference is known, as it comes from a store."""

    @property
    def reference(self) -> Reference | None: ...


T = TypeVar("T")
Kept = TypeVar("Kept", bound=Loaded)


@dataclass(frozen=True, eq=False)
class Served:
    """One version of one model, ready to answer."""

    parser: Parser
    reference: Reference
    facts: ModelDetails

    @property
    def version(self) -> dict[str, Any]:
        """The name, version and hash that every answer contains."""
        one = self.reference
        return {"name": one.name, "version": one.version, "hash": one.hash}


DEPENDENCIES = "en-dep"
"""The dependency model that is served where none is named, if the store or the package has it."""
NEWEST = "newest"
"""Stands for a version's number: the highest there is."""


@dataclass(eq=False)
class Slot(Generic[Kept]):
    """One model of a service: which version is wanted, and the one that is served.

    `pinned` is the number of the only version wanted; without it, the newest one is.
    """

    name: str
    store: str
    make: Callable[[str, str], Kept]
    pinned: int | None = None
    value: Kept | None = None
    refused: int | None = None
    """The version that was wanted last and could not be loaded, if so."""

    @classmethod
    def of(cls, reference: str, store: str, make: Callable[[str, str], Kept]) -> "Slot[Kept]":
        """Find the model in its store. Raise StoreError if there is none."""
        home, name, number = locate(reference, store)
        return cls(name, home, make, number if "@" in reference or "/" in reference else None)

    @property
    def reference(self) -> Reference | None:
        """The version that is served; None while none is loaded."""
        return None if self.value is None else self.value.reference

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
            self.value = self.make(name, self.store)
        except StoreError as error:
            _log.error("model refused", model=name, reason=str(error), served=str(self.reference))
            raise
        _log.info("model", model=name, hash=getattr(self.reference, "hash", None))


class Models:
    """Models by name. The first is the default."""

    def __init__(
        self,
        references: Iterable[str],
        store: str,
        dependencies: str | None = None,
        tagger: str | None = None,
    ) -> None:
        """Check that the models exist, which is quick. `load` makes them ready."""
        self._slots: dict[str, Slot[Served]] = {}
        for reference in references:
            slot = Slot.of(reference, store, partial(_load, default=not self._slots))
            if slot.name in self._slots:
                raise SettingsError(
                    f"expected models of different names, got {slot.name} twice: serve each with "
                    "a process of its own"
                )
            self._slots[slot.name] = slot
        self._dependencies = _dependency_model(dependencies, store)
        self._tagger = None if tagger is None else Slot.of(tagger, store, _load_tagger)
        # Loads follow one another on one thread, so the memory of one serves the next.
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._last: Future[Any] | None = None

    @property
    def _others(self) -> list[Slot[Any]]:
        return [slot for slot in (self._dependencies, self._tagger) if slot is not None]

    @property
    def _all(self) -> list[Slot[Any]]:
        return [*self._slots.values(), *self._others]

    @property
    def ready(self) -> bool:
        """True once every model is loaded."""
        return all(slot.value is not None for slot in self._all)

    @property
    def busy(self) -> bool:
        """True while a model is being loaded, even if nobody waits for it any more."""
        return self._last is not None and not self._last.done()

    def __iter__(self) -> Iterator[Served]:
        return (slot.value for slot in self._slots.values() if slot.value is not None)

    @property
    def references(self) -> list[Reference]:
        """The versions that are served, dependency and tagging models included."""
        return [slot.reference for slot in self._all if slot.reference is not None]

    @property
    def refused(self) -> list[tuple[str, int]]:
        """The versions that are wanted and could not be loaded: names and numbers."""
        return [(slot.name, slot.refused) for slot in self._all if slot.refused is not None]

    async def run(self, work: Callable[[], T]) -> T:
        """Do this on the thread that loads models, when its turn comes."""
        self._last = running = self._loader.submit(work)
        return await asyncio.wrap_future(running)

    async def load(self, *, fall_back: bool = True) -> None:
        """Load every model. At a first start, another process compiles the dependency model's
        kernels meanwhile.
        """
        beside, dependencies = BackgroundCompiler(), self._dependencies

        def begin() -> None:
            if dependencies is not None:
                beside.begin(partial(_load_dependencies, dependencies.name, dependencies.store))

        with when_compiling(begin):
            for slot in self._slots.values():
                await self.run(partial(slot.start, fall_back=fall_back))
        await self.run(beside.wait)
        for other in self._others:
            await self.run(partial(other.start, fall_back=fall_back))
        await self.run(_tidy)

    def close(self) -> None:
        """Begin no other load."""
        self._loader.shutdown(wait=False, cancel_futures=True)

    async def reload(self, name: str, version: int | Literal["newest"] | None = None) -> Reference:
        """Serve another version of a model: see `Slot.replace`. Reloads wait for one another.

        Requests in progress are answered by the version they began with.
        """
        slot = next((slot for slot in self._all if slot.name == name), None)
        if slot is None or slot.reference is None:
            raise Refused(
                "not-found",
                f"expected one of the models {', '.join(one.name for one in self._all)}, got "
                f"{name!r}: name one of them",
            )
        await self.run(partial(slot.replace, version))
        await self.run(_tidy)
        return slot.reference

    async def reload_all(self) -> None:
        """Serve the newest version of every model that is not pinned. Refused ones are logged."""
        for slot in self._all:
            with suppress(StoreError):
                await self.reload(slot.name)

    def dependencies(self, name: str | None) -> tuple[DependencyParser, dict[str, Any]]:
        """Return the dependency parser, and what answers say of its model."""
        return _only(self._dependencies, name, "dependency", "LPCFG_DEPENDENCIES")

    def tagger(self, name: str | None) -> tuple[SequenceTagger, dict[str, Any]]:
        """Return the tagger, and what answers say of its model."""
        return _only(self._tagger, name, "tagging", "LPCFG_TAGGER")

    def at(self, name: str) -> Served:
        """Return the model with the name in a path."""
        slot = self._slots.get(name)
        if slot is not None and slot.value is None:
            raise starting()
        try:
            return self.named(name)
        except InputError as error:
            raise Refused("not-found", str(error)) from error

    def named(self, name: str | None) -> Served:
        """Return the model with this NAME or NAME@VERSION, or the default."""
        if name is None:
            return next(iter(self))
        bare, _, version = name.partition("@")
        slot = self._slots.get(bare)
        found = None if slot is None else slot.value
        if found is None:
            raise InputError(
                f"expected one of the models {', '.join(self._slots)}, got {name!r}: name one of "
                "them, or none for the first",
                pointer="/model",
            )
        if version not in ("", str(found.reference.version)):
            raise InputError(
                f"expected version {found.reference.version} of {bare}, which is served, got "
                f"{name!r}: leave the version out, or name that one",
                pointer="/model",
            )
        return found


def _only(
    slot: Slot[Other] | None, name: str | None, kind: str, setting: str
) -> tuple[Other, dict[str, Any]]:
    """Return the one model of a kind, if it is served and named, or not named."""
    if slot is None or slot.value is None or slot.reference is None:
        raise Refused(
            "not-found",
            f"expected a service with a {kind} model, got one without: start it with {setting} "
            "set to the name of one in its store",
        )
    one = slot.reference
    if name not in (None, one.name, str(one)):
        raise InputError(
            f"expected the {kind} model {one}, which is served, got {name!r}: name it, or none",
            pointer="/model",
        )
    return slot.value, {"name": one.name, "version": one.version, "hash": one.hash}


def _dependency_model(name: str | None, store: str) -> "Slot[DependencyParser] | None":
    """Find the dependency model to serve. Raise if one is asked for that is nowhere."""
    try:
        return Slot.of(name or DEPENDENCIES, store, _load_dependencies)
    except StoreError:
        if name is not None:
            raise
        return None


def _load_dependencies(reference: str, store: str) -> DependencyParser:
    parser = DependencyParser.load(reference, store)
    parser.parse(_WARMING)
    return parser


def _load_tagger(reference: str, store: str) -> SequenceTagger:
    tagger = SequenceTagger.load(reference, store)
    for tokens in _WARMING:
        tagger.tag(Sentence(tokens))
    return tagger


def _load(reference: str, store: str, default: bool) -> Served:
    stored = load(reference, store)
    parser = ready(stored)
    _warm(parser)
    return Served(parser, stored.reference, _facts(stored, parser, default))


def _tidy() -> None:
    """Give the memory of the model before back to the system."""
    gc.collect()
    gc.freeze()  # models live long: the collector can skip them
    give_back()


def _warm(parser: Parser) -> None:
    for tokens in _WARMING:
        sentence = Sentence(tokens)
        for objective in OBJECTIVES:
            next(parser.predict([sentence], ParseOptions(k=2, objective=objective)))
        parser.marginals(sentence, threshold=0.5)
        parser.tree_probability([parse.tree for parse in parser.parse([sentence])[0].parses])


def _facts(stored: Stored, parser: Parser, default: bool) -> ModelDetails:
    grammar = parser.model.grammar
    known = sorted(Labels.of(grammar).ids)
    return ModelDetails(
        name=stored.reference.name,
        version=stored.reference.version,
        hash=stored.reference.hash,
        default=default,
        symbols=len(grammar.symbols),
        rules=len(grammar.rules),
        states=parser.model.states,
        labels=[label for label, is_tag in known if not is_tag],
        tags=[label for label, is_tag in known if is_tag],
        rescoring=parser.model.rescoring is not None,
        facts=cast(dict[str, Any], stored.manifest["facts"]),
    )
