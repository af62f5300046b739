"""The served models: verified and warmed before the first answer, and replaced in one step."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from lpcfg.engine.pruned.decode import OBJECTIVES
from lpcfg.errors import InputError, SettingsError
from lpcfg.models.model import from_bundle
from lpcfg.models.store.versions import Reference, Stored, load, resolve
from lpcfg.parsing.parser import Parser
from lpcfg.parsing.readout import Labels
from lpcfg.parsing.results import Options, Sentence
from lpcfg.protocol.schemas import ModelDetails
from lpcfg.web.http.problems import Refused

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


class Models:
    """Models by name. The first is the default."""

    def __init__(self, references: Iterable[str], store: str) -> None:
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

    @property
    def ready(self) -> bool:
        """True once every model is loaded."""
        return len(self._served) == len(self._wanted)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._served.values())

    async def load(self) -> None:
        """Load every model. Call this on a thread, not on the event loop."""
        for name, reference in self._wanted.items():
            default = not self._served
            self._served[name] = await asyncio.to_thread(_load, reference, self._store, default)

    async def reload(self, name: str) -> Served:
        """Replace a model by the newest version in the store. If this fails, keep the old version.

        Requests in progress are answered by the version they began with.
        """
        old = self.at(name)
        new = await asyncio.to_thread(_load, old.reference.name, self._store, old.facts.default)
        self._served[old.reference.name] = new
        return new

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


def _load(reference: str, store: str, default: bool) -> Served:
    stored = load(reference, store)
    parser = Parser(from_bundle(stored), reference=stored.reference)
    _warm(parser)
    return Served(parser, stored.reference, _facts(stored, parser, default))


def _warm(parser: Parser) -> None:
    for tokens in _WARMING:
        sentence = Sentence(tokens)
        for objective in OBJECTIVES:
            parser.parse([sentence], Options(k=2, objective=objective))
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
