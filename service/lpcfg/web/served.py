"""The served models: verified and warmed before the first answer, and replaced in one step."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from lpcfg.dependencies.parser import DependencyParser
from lpcfg.engine.pruned.decode import OBJECTIVES
from lpcfg.errors import InputError, SettingsError, StoreError
from lpcfg.models.model import from_bundle
from lpcfg.models.store.versions import Reference, Stored, load, resolve
from lpcfg.parsing.parser import Parser
from lpcfg.parsing.readout import Labels
from lpcfg.parsing.results import Options, Sentence
from lpcfg.protocol.schemas import ModelDetails
from lpcfg.sequences.tagger import SequenceTagger
from lpcfg.web.http.problems import Refused

Other = TypeVar("Other", DependencyParser, SequenceTagger)
"""What answers for a model of another kind."""

# Before a model is ready, every path of the engine runs once, so that no request waits for
# compilation: a word, a clause, a long sentence, and tokens that no grammar joins.
_WARMING = (
    ("Yes",),
    ("The", "cat", "sat", "on", "the", "mat", "."),
    ("The", "cat", "that", "the", "dog", "chased", "sat", "on", "the", "old", "mat", "."),
    (")", "(", ")"),
)


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
"""The dependency model that is served where the store has it."""


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
        self._store = store
        self._wanted: dict[str, str] = {}
        for reference in references:
            name = resolve(reference, store).name
            if name in self._wanted:
                raise SettingsError(
                    f"expected models of different names, got {self._wanted[name]} and "
                    f"{reference}: serve each with a process of its own"
                )
            self._wanted[name] = reference
        self._served: dict[str, Served] = {}
        self._wanted_dependencies = _dependency_model(dependencies, store)
        self._dependencies: DependencyParser | None = None
        self._wanted_tagger = None if tagger is None else str(resolve(tagger, store))
        self._tagger: SequenceTagger | None = None

    @property
    def ready(self) -> bool:
        """True once every model is loaded."""
        has_all = len(self._served) == len(self._wanted)
        has_dependencies = self._wanted_dependencies is None or self._dependencies is not None
        return has_all and has_dependencies and (self._wanted_tagger is None or bool(self._tagger))

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    @property
    def references(self) -> list[Reference]:
        """The versions that are served, dependency and tagging models included."""
        found = [one.reference for one in self]
        others = (self._dependencies, self._tagger)
        return [*found, *(one.reference for one in others if one and one.reference)]

    async def load(self) -> None:
        """Load every model. Call this on a thread, not on the event loop."""
        for name, reference in self._wanted.items():
            default = not self._served
            self._served[name] = await asyncio.to_thread(_load, reference, self._store, default)
        if self._wanted_dependencies is not None:
            self._dependencies = await asyncio.to_thread(
                _load_dependencies, self._wanted_dependencies, self._store
            )
        if self._wanted_tagger is not None:
            self._tagger = await asyncio.to_thread(_load_tagger, self._wanted_tagger, self._store)

    async def reload(self, name: str) -> Served:
        """Replace a model by the newest version in the store. If this fails, keep the old version.

        Requests in progress are answered by the version they began with.
        """
        old = self.at(name)
        new = await asyncio.to_thread(_load, old.reference.name, self._store, old.facts.default)
        self._served[old.reference.name] = new
        return new

    def dependencies(self, name: str | None) -> tuple[DependencyParser, dict[str, Any]]:
        """Return the dependency parser, and what answers say of its model."""
        return _only(self._dependencies, name, "dependency", "LPCFG_DEPENDENCIES")

    def tagger(self, name: str | None) -> tuple[SequenceTagger, dict[str, Any]]:
        """Return the tagger, and what answers say of its model."""
        return _only(self._tagger, name, "tagging", "LPCFG_TAGGER")

    def at(self, name: str) -> Served:
        """Return the model with the name in a path."""
        try:
            return self.named(name)
        except InputError as error:
            raise Refused("not-found", str(error)) from error

    def named(self, name: str | None) -> Served:
        """Return the model with this NAME or NAME@VERSION, or the default."""
        if name is None:
            return next(iter(self._served.values()))
        bare, _, version = name.partition("@")
        found = self._served.get(bare)
        if found is None:
            raise InputError(
                f"expected one of the models {', '.join(self._served)}, got {name!r}: name one of "
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


def _only(served: Other | None, name: str | None, kind: str, setting: str) -> tuple[Other, Any]:
    """Return the one model of a kind, if it is served and named, or not named."""
    if served is None or served.reference is None:
        raise Refused(
            "not-found",
            f"expected a service with a {kind} model, got one without: start it with {setting} "
            "set to the name of one in its store",
        )
    one = served.reference
    if name not in (None, one.name, str(one)):
        raise InputError(
            f"expected the {kind} model {one}, which is served, got {name!r}: name it, or none",
            pointer="/model",
        )
    return served, {"name": one.name, "version": one.version, "hash": one.hash}


def _dependency_model(name: str | None, store: str) -> str | None:
    """Find the dependency model to serve. Raise if one is asked for that the store lacks."""
    try:
        return str(resolve(name or DEPENDENCIES, store))
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
    parser = Parser(from_bundle(stored), reference=stored.reference)
    _warm(parser)
    return Served(parser, stored.reference, _facts(stored, parser, default))


def _warm(parser: Parser) -> None:
    for tokens in _WARMING:
        sentence = Sentence(tokens)
        for objective in OBJECTIVES:
            parser.analyse([sentence], Options(k=2, objective=objective))
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
        facts=cast(dict[str, Any], stored.manifest["facts"]),
    )
