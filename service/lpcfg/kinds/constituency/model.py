"""A model: the data a parser needs, and its stored form.

All members of a model share its grammar, its lexicon and its coarse (m = 1) tables. In the store,
the factors of rules are float16 with one scale per term. This changes no F1 and halves the size; a
model may ask for full precision instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError, StoreError
from lpcfg.engine.pruned.coarse import ContextTables
from lpcfg.engine.rescoring.layer import Layer
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Doubles, Grammar, Tables, frozen
from lpcfg.grammar.tagging import FREQUENT, TagModel
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.checks import check
from lpcfg.kinds.constituency.layer import layer_of, layer_parts
from lpcfg.kinds.constituency.members import StoredMember, StoredMembers, member_arrays
from lpcfg.kinds.constituency.surprisal import SurprisalQuantiles
from lpcfg.store.files import GRAMMAR, TENSORS, Bundle
from lpcfg.store.parts import Parts
from lpcfg.store.versions import Stored

Arrays = dict[str, NDArray[Any]]
KIND = "constituency"
"""The kind of versions whose grammar.json names none."""


@dataclass(frozen=True, eq=False)
class Fallback:
    """A coarser m = 1 grammar over the same preterminals, for sentences without a parse."""

    grammar: Grammar
    coarse: Tables
    context: ContextTables


@dataclass(frozen=True, eq=False)
class Model:
    """Symbols, words, coarse tables and the members' tables.

    `horizontal` says how the trees were binarized. Without members, the coarse tables are the
    model. `weights` are the members' weights; without them all members count alike. `calibration`
    maps a raw span posterior to the share of such spans that is right. `tagger` helps to choose the
    tags of words that come without one. The
    `rescoring` layer decides over the members' charts; `kind_calibrations` map its posteriors where
    there is one for the kind of text, `rescored_calibration` elsewhere.
    """

    grammar: Grammar
    lexicon: Lexicon
    coarse: Tables
    context: ContextTables
    members: Sequence[Tables] = ()
    fallback: Fallback | None = None
    calibration: MonotoneMap | None = None
    surprisal: SurprisalQuantiles | None = None
    horizontal: int = 0
    tagger: TagModel | None = None
    weights: tuple[float, ...] = ()
    rescoring: Layer | None = None
    rescored_calibration: MonotoneMap | None = None
    kind_calibrations: Mapping[str, MonotoneMap] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.weights
        if given and (len(given) != len(self.members) or not all(w > 0 for w in given)):
            raise GrammarError(
                f"expected a weight above 0 for each of {len(self.members)} members, "
                f"got {list(given)}: give one each, or none"
            )

    @property
    def weighted(self) -> Iterator[tuple[Tables | StoredMember, float]]:
        """The members with their weights, those of a store as they are stored."""
        return zip(self._unmade, self.weights or (1.0,) * len(self.members), strict=True)

    @property
    def _unmade(self) -> Sequence[Tables | StoredMember]:
        return self.members.stored if isinstance(self.members, StoredMembers) else self.members

    @property
    def states(self) -> int:
        """The largest number of latent states of any symbol."""
        return max((int(member.states.max()) for member in self._unmade), default=1)


def fallback_grammar(
    grammar: Grammar, internal: Sequence[str], rules: NDArray[np.integer[Any]]
) -> Grammar:
    """Build a grammar with other in-terminals and rules over the same preterminals and entries."""
    shift = len(internal) - grammar.n_internal
    return Grammar(
        symbols=(*internal, *grammar.symbols[grammar.n_internal :]),
        n_internal=len(internal),
        rules=np.asarray(rules, np.int32),
        terminals=grammar.terminals,
        entries=grammar.entries + np.array([shift, 0], np.int32),
    )


def to_bundle(
    model: Model, *, facts: Mapping[str, object], card: str, exact: bool = False
) -> Bundle:
    """Turn a model into the arrays and facts that the store keeps.

    `exact` keeps the members' numbers in full precision.
    """
    lexicon = model.lexicon
    tensors: Arrays = {
        "rules": model.grammar.rules,
        "entries": model.grammar.entries,
        "lexicon.symbol_count": lexicon.symbol_count,
        "lexicon.word_terminal": lexicon.word_terminal,
        "lexicon.word_start": lexicon.word_start,
        "lexicon.pair_symbol": lexicon.pair_symbol,
        "lexicon.pair_count": lexicon.pair_count,
        "lexicon.signature_terminal": lexicon.signature_terminal,
        "lexicon.share": lexicon.share,
        **_coarse_arrays("", model.coarse, model.context),
    }
    for k, member in enumerate(model.members):
        tensors.update(member_arrays(f"members.{k}.", member, exact))
    described: dict[str, object] = {
        "symbols": model.grammar.symbols,
        "n_internal": model.grammar.n_internal,
        "terminals": model.grammar.terminals,
        "words": lexicon.words,
        "signatures": lexicon.signatures,
        "language": lexicon.language,
        "rare_threshold": lexicon.rare_threshold,
        "horizontal": model.horizontal,
        "members": len(model.members),
    }
    if model.weights:
        described["weights"] = model.weights
    if model.fallback is not None:
        other = model.fallback
        described["fallback"] = other.grammar.symbols[: other.grammar.n_internal]
        tensors["fallback.rules"] = other.grammar.rules
        tensors.update(_coarse_arrays("fallback.", other.coarse, other.context))
    if model.calibration is not None:
        described["calibration"] = model.calibration.as_lists()
    if model.surprisal is not None:
        described["usual"] = model.surprisal.as_json()
    if model.rescoring is not None:
        arrays, of_layer = layer_parts(model.rescoring)
        tensors.update(arrays)
        if model.rescored_calibration is not None:
            of_layer["calibration"] = model.rescored_calibration.as_lists()
        if maps := model.kind_calibrations:
            of_layer["kind_calibrations"] = {kind: one.as_lists() for kind, one in maps.items()}
        described["rescoring"] = of_layer
    if model.tagger is not None:
        described["tagger"] = {"gamma": model.tagger.gamma}
        tensors["tagger.weight"] = model.tagger.weight
        tensors["tagger.scale"] = model.tagger.scale
        if classes := model.tagger.classes:
            described["word_classes"] = tuple(classes)
            tensors["tagger.class"] = np.array(list(classes.values()), np.uint16)
    return Bundle(tensors=tensors, grammar=described, facts=facts, card=card)


def from_bundle(stored: Stored | Bundle) -> Model:
    """Turn stored arrays and facts back into a model. Raise StoreError if they are not one."""
    parts = Parts.of(stored)
    parts.check_kind(KIND, "a model that `lpcfg train` made")
    check(parts)
    try:
        return _model(dict(stored.grammar), dict(stored.tensors))
    except GrammarError as error:
        raise StoreError(f"{parts.folder}{GRAMMAR}, {TENSORS}: {error}") from error


def _model(described: dict[str, Any], tensors: Arrays) -> Model:
    grammar = Grammar(
        symbols=tuple(described["symbols"]),
        n_internal=described["n_internal"],
        rules=tensors["rules"],
        terminals=tuple(described["terminals"]),
        entries=tensors["entries"],
    )
    lexicon = Lexicon(
        language=described["language"],
        rare_threshold=described["rare_threshold"],
        symbols=grammar.symbols,
        symbol_count=tensors["lexicon.symbol_count"],
        terminals=grammar.terminals,
        words=tuple(described["words"]),
        word_terminal=tensors["lexicon.word_terminal"],
        word_start=tensors["lexicon.word_start"],
        pair_symbol=tensors["lexicon.pair_symbol"],
        pair_count=tensors["lexicon.pair_count"],
        signatures=tuple(described["signatures"]),
        signature_terminal=tensors["lexicon.signature_terminal"],
        share=tensors["lexicon.share"],
    )
    fallback = None
    if "fallback" in described:
        other = fallback_grammar(grammar, described["fallback"], tensors["fallback.rules"])
        fallback = Fallback(other, *_coarse("fallback.", other, tensors))
    coarse, context = _coarse("", grammar, tensors)
    of_layer = described.get("rescoring", {})
    return Model(
        grammar=grammar,
        lexicon=lexicon,
        coarse=coarse,
        context=context,
        members=StoredMembers(grammar, tensors, described["members"])
        if described["members"]
        else (),
        fallback=fallback,
        calibration=_map(described.get("calibration")),
        surprisal=SurprisalQuantiles.from_json(described["usual"])
        if "usual" in described
        else None,
        horizontal=described["horizontal"],
        tagger=_tagger(described, lexicon, tensors) if "tagger" in described else None,
        weights=tuple(described.get("weights", ())),
        rescoring=layer_of(of_layer, tensors, grammar, lexicon) if of_layer else None,
        rescored_calibration=_map(of_layer.get("calibration")),
        kind_calibrations={
            kind: MonotoneMap.from_lists(lists)
            for kind, lists in of_layer.get("kind_calibrations", {}).items()
        },
    )


def _map(lists: Sequence[Sequence[float]] | None) -> MonotoneMap | None:
    return MonotoneMap.from_lists(lists) if lists else None


def _tagger(described: dict[str, Any], lexicon: Lexicon, tensors: Arrays) -> TagModel:
    names = described.get("word_classes", ())
    numbers = tensors["tagger.class"].tolist() if names else []
    classes = dict(zip(names, numbers, strict=True))
    return TagModel(
        tags=lexicon.tags,
        frequent=lexicon.seen_at_least(FREQUENT),
        weight=tensors["tagger.weight"],
        scale=tensors["tagger.scale"],
        gamma=described["tagger"]["gamma"],
        classes=classes,
    )


def _coarse_arrays(prefix: str, coarse: Tables, context: ContextTables) -> Arrays:
    return {
        prefix + "coarse.q": coarse.parent,
        prefix + "coarse.root": coarse.c_one,
        prefix + "context.transition": context.transition.astype(np.float32),
        prefix + "context.before": context.before.astype(np.float32),
        prefix + "context.after": context.after.astype(np.float32),
    }


def _coarse(prefix: str, grammar: Grammar, tensors: Arrays) -> tuple[Tables, ContextTables]:
    coarse = coarse_tables(grammar, tensors[prefix + "coarse.q"], tensors[prefix + "coarse.root"])
    names = ("transition", "before", "after")
    context = (frozen(tensors[f"{prefix}context.{n}"].astype(np.float64)) for n in names)
    return coarse, ContextTables(*context)


def coarse_tables(grammar: Grammar, q: Doubles, root: Doubles) -> Tables:
    """Build the m = 1 tables of rule probabilities and root shares. The lexicon supplies c∞."""
    ones = np.ones(grammar.n_rules)
    return Tables(
        grammar=grammar,
        states=np.ones(grammar.n_symbols, np.int32),
        terms=np.ones(grammar.n_rules, np.int32),
        parent=q,
        left=ones,
        right=ones,
        c_inf=np.ones(len(grammar.entries)),
        c_one=root,
    )
