"""Check all that is stored of a constituency model before anything uses it.

`from_bundle` calls this, so start, reload, `lpcfg models verify` and `lpcfg serve --check` refuse
the same models with the same words. `Grammar`, `Tables`, `TagModel`, `Layer` and the maps check
what concerns them alone (ids, order, sizes) when they are made; here are types, shapes and ranges,
which they take for granted, and what has to fit together.
"""

import re

import numpy as np

from lpcfg.engine.pruned.coarse import ContextTables
from lpcfg.grammar.lexicon import ANY, tags_of
from lpcfg.kinds.constituency.layer import LAYER_TENSORS, PREFIX, check_layer
from lpcfg.store.parts import LARGEST, Array, Parts
from lpcfg.text.languages import LANGUAGES
from lpcfg.trees.binarize import is_intermediate

MOST_SYMBOLS = 1 << 15
"""The coarse pass has a table of all pairs of symbols: 4 GiB at this number."""
MOST_COUNTED = 1 << 53
"""Counts are summed as float64 as well, which holds whole numbers up to here."""
LONGEST_CHAIN = 1000
"""Labels of a unary chain, each of which is a level of the tree in an answer."""
_SYMBOL = re.compile(r"@[^\s()]*|[^\s()|]+(\|[^\s()|]+)*")
"""A chain of labels, or a symbol of binarization, which is no label."""
LEAST = 1e-15
"""Probabilities that are divided by are 0 or at least this."""
SUM_TOLERANCE = 1e-3
"""Sums of up to 10⁴ numbers of float32 that were rounded from a sum of 1."""

FIELDS = (
    *("symbols", "n_internal", "terminals", "words", "signatures", "language"),
    *("rare_threshold", "horizontal", "members", "weights", "fallback", "calibration"),
    *("word_classes", "usual", "rescoring", "tagger", "kind"),
)
LEXICON = (
    *("symbol_count", "word_terminal", "word_start", "pair_symbol", "pair_count"),
    *("signature_terminal", "share"),
)
COARSE = ("coarse.q", "coarse.root", *(f"context.{name}" for name in ContextTables.__annotations__))
MEMBER = ("states", "terms", "c_one", "parent", "left", "right", "c_inf", "scale", "c_inf_scale")
MOST_MEMBERS = 1000


def check(parts: Parts) -> None:
    """Raise StoreError unless the pieces are a model that can be used."""
    members = parts.integer("members", 0, MOST_MEMBERS)
    parts.check_names(_tensor_names(parts, members), FIELDS)
    symbols, internal = _check_symbols(parts)
    terminals = parts.strings("terminals", least=1)
    rules = parts.numbers("rules", "I32", (None, 3), 0, len(symbols) - 1)
    entries = _check_entries(parts, internal, symbols, terminals)
    tags = _check_lexicon(parts, symbols, internal, len(terminals))
    _check_words_have_entries(parts, entries, len(symbols), terminals)
    _check_coarse(parts, "", rules, symbols, len(tags))
    for k in range(members):
        _check_member(parts, f"members.{k}.", rules, entries)
    if "weights" in parts.described and len(parts.number_list("weights")) not in (0, members):
        raise parts.refused("weights", f"{members} weights", parts.described["weights"])
    _check_optional(parts, symbols, internal, tags)


def _tensor_names(parts: Parts, members: int) -> list[str]:
    """Return the names that tensors may have."""
    names = ["rules", "entries", *(f"lexicon.{name}" for name in LEXICON), *COARSE]
    names += [f"members.{k}.{name}" for k in range(members) for name in MEMBER]
    if "fallback" in parts.described:
        names += ["fallback.rules", *(f"fallback.{name}" for name in COARSE)]
    if "tagger" in parts.described:
        names += ["tagger.weight", "tagger.scale", "tagger.class"]
    if "rescoring" in parts.described:
        names += [PREFIX + name for name in LAYER_TENSORS]
    return names


def _check_symbols(parts: Parts) -> tuple[tuple[str, ...], int]:
    name = "symbols"
    symbols = parts.strings(name, least=1)
    if len(symbols) > MOST_SYMBOLS:
        raise parts.refused(name, f"at most {MOST_SYMBOLS} symbols", len(symbols))
    for symbol in symbols:
        if symbol.count("|") >= LONGEST_CHAIN:
            found = f"{symbol.count('|') + 1} in `{symbol[:40]}…`"
            raise parts.refused(name, f"at most {LONGEST_CHAIN} labels in a chain", found)
    wrong = [symbol for symbol in symbols if not _SYMBOL.fullmatch(symbol)]
    if wrong:
        expected = "labels that brackets can hold: no white space, no parentheses, none empty"
        raise parts.refused(name, expected, repr(wrong[0]))
    internal = parts.integer("n_internal", 0, len(symbols) - 1)
    for symbol in symbols[internal:]:
        if is_intermediate(symbol):
            raise parts.refused(name, "preterminals that are no `@` of binarization", symbol)
    return symbols, internal


def _check_entries(
    parts: Parts, internal: int, symbols: tuple[str, ...], terminals: tuple[str, ...]
) -> Array:
    highest = max(len(symbols), len(terminals)) - 1
    entries = parts.numbers("entries", "I32", (None, 2), 0, highest)
    for column, low, high in ((0, internal, len(symbols)), (1, 0, len(terminals))):
        wrong = np.flatnonzero((entries[:, column] < low) | (entries[:, column] >= high))
        if len(wrong):
            found = f"{entries[wrong[0], column]} at {wrong[0]}, {column}"
            expected = ("preterminals", "terminals")[column]
            raise parts.refused("entries", f"{expected} from {low} to {high - 1}", found)
    return entries


# The lexicon --------------------------------------------------------------------------------------


def _check_lexicon(
    parts: Parts, symbols: tuple[str, ...], internal: int, terminals: int
) -> tuple[str, ...]:
    """Check words, pairs and signatures; return the tags."""
    parts.choice("language", tuple(LANGUAGES))
    rare = parts.integer("rare_threshold", 0, 1 << 31)
    parts.integer("horizontal", 0, 1)
    counts = parts.numbers("lexicon.symbol_count", "I64", (len(symbols),), 0, MOST_COUNTED)
    if counts[:internal].any() or not counts.any() or float(counts.sum(dtype=np.float64)) >= 2**53:
        expected = "counts of preterminals alone, with a sum from 1 to 2⁵³"
        raise parts.refused("lexicon.symbol_count", expected, "others")
    words = parts.strings("words")
    parts.numbers("lexicon.word_terminal", "I32", (len(words),), 0, terminals - 1)
    _check_pairs(parts, len(words), internal, counts)
    tags, _ = tags_of(symbols, counts > 0)
    signatures = parts.strings("signatures", least=min(rare, 1))
    parts.numbers("lexicon.signature_terminal", "I32", (len(signatures),), 0, terminals - 1)
    share = parts.numbers("lexicon.share", "F32", (len(signatures), len(tags)), 0, 1)
    _check_sums(parts, "lexicon.share", share.sum(axis=1, dtype=np.float64), 1.0)
    return tags


def _check_pairs(parts: Parts, words: int, internal: int, counts: Array) -> None:
    """Check which words were seen under which preterminals: every word under one or more."""
    name = "lexicon.pair_symbol"
    symbol = parts.numbers(name, "I32", (None,), internal, len(counts) - 1)
    count = parts.numbers("lexicon.pair_count", "I32", (len(symbol),), 1, (1 << 31) - 1)
    start = parts.offsets("lexicon.word_start", words, len(symbol))
    rising = np.diff(symbol) > 0
    rising[start[1:-1] - 1] = True  # where the next word begins
    if not rising.all():
        at = int(np.argmin(rising)) + 1
        raise parts.refused(name, "preterminals that increase within a word", f"others at {at}")
    summed = np.bincount(symbol, count, len(counts))
    wrong = np.flatnonzero(summed > counts)
    if len(wrong):
        found = f"{counts[wrong[0]]} at {wrong[0]}"
        expected = f"{summed[wrong[0]]:.0f} or more, which its words have"
        raise parts.refused("lexicon.symbol_count", expected, found)


def _check_words_have_entries(
    parts: Parts, entries: Array, symbols: int, terminals: tuple[str, ...]
) -> None:
    """Refuse a lexicon that gives a word a preterminal without a vector for it."""
    if parts.described["rare_threshold"] == 0:
        if parts.strings("words") != terminals:
            raise parts.refused("terminals", "the words, as the lexicon is literal", "others")
        sizes = np.diff(parts.tensors["lexicon.word_start"])
        emitted = np.repeat(np.arange(len(terminals)), sizes)
        wanted = emitted * symbols + parts.tensors["lexicon.pair_symbol"]
    else:
        if terminals[-1] != ANY:
            raise parts.refused("terminals", f"{ANY!r} as the last one", repr(terminals[-1]))
        seen = np.flatnonzero(parts.tensors["lexicon.symbol_count"])
        wanted = (len(terminals) - 1) * symbols + seen
    found = np.isin(wanted, entries[:, 1].astype(np.int64) * symbols + entries[:, 0])
    if not found.all():
        terminal, symbol = divmod(int(wanted[np.argmin(found)]), symbols)
        expected = f"an entry of preterminal {symbol} over terminal {terminal}"
        raise parts.refused("entries", expected, "none")


# Tables -------------------------------------------------------------------------------------------


def _check_coarse(
    parts: Parts, prefix: str, rules: Array, symbols: tuple[str, ...], tags: int
) -> None:
    """Check probabilities of rules and roots, and the tables of what stands beside constituents."""
    q = parts.numbers(prefix + "coarse.q", "F64", (len(rules),), LEAST, 1)
    sums = np.bincount(rules[:, 0], q, len(symbols))
    _check_sums(parts, prefix + "coarse.q", sums[np.unique(rules[:, 0])], 1.0)
    root = parts.numbers(prefix + "coarse.root", "F64", (len(symbols),), 0, 1)
    _check_sums(parts, prefix + "coarse.root", root.sum(keepdims=True), 1.0)
    rooted = np.flatnonzero(root)
    wrong = [a for a in rooted.tolist() if is_intermediate(symbols[a]) or root[a] < LEAST]
    if wrong:
        expected = f"0 or at least {LEAST:g}, and 0 at an `@` of binarization"
        found = f"{root[wrong[0]]} at {wrong[0]}"
        raise parts.refused(prefix + "coarse.root", expected, found)
    least = float(np.finfo(np.float32).tiny)  # sentences' probabilities are divided by
    parts.numbers(prefix + "context.transition", "F32", (tags + 1, tags + 1), least, 1 + 1e-6)
    for name in ("before", "after"):
        parts.numbers(f"{prefix}context.{name}", "F32", (tags + 1, len(symbols)), 0, 1e6)


def _check_sums(parts: Parts, name: str, sums: Array, expected: float) -> None:
    wrong = np.flatnonzero(np.abs(sums - expected) > SUM_TOLERANCE)
    if len(wrong):
        found = f"{sums[wrong[0]]:g} at {wrong[0]}"
        raise parts.refused(name, "probabilities with sums of 1", found)


def _check_member(parts: Parts, prefix: str, rules: Array, entries: Array) -> None:
    """Check the tensors of a member: their sizes follow from its states and terms."""
    symbols = len(parts.described["symbols"])
    roots = parts.numbers(prefix + "c_one", "F32 F64", (None,))
    states = parts.numbers(prefix + "states", "I32", (symbols,), 1, max(len(roots), 1))
    terms = parts.numbers(prefix + "terms", "I32", (len(rules),), 0, (1 << 31) - 1)
    parts.tensor(prefix + "c_one", "F32 F64", (int(states.sum(dtype=np.int64)),))
    halved = parts.tensor(prefix + "parent", "F16 F32 F64", (None,)).dtype == np.float16
    dtypes, most = ("F16", 1.0) if halved else ("F32 F64", LARGEST)
    for column, side in enumerate(("parent", "left", "right")):
        size = int(np.dot(terms.astype(np.int64), states[rules[:, column]]))
        parts.numbers(prefix + side, dtypes, (size,), -most, most)
    size = int(states[entries[:, 0]].sum(dtype=np.int64))
    parts.numbers(prefix + "c_inf", dtypes, (size,), -most, most)
    if halved:
        total = int(terms.sum(dtype=np.int64))
        parts.numbers(prefix + "scale", "F32", (total,), 0, LARGEST)
        parts.numbers(prefix + "c_inf_scale", "F32", (len(entries),), 0, LARGEST)


# What not every model has -------------------------------------------------------------------------


def _check_optional(
    parts: Parts, symbols: tuple[str, ...], internal: int, tags: tuple[str, ...]
) -> None:
    described = parts.described
    if "fallback" in described:
        coarser = parts.strings("fallback", least=0)
        own = (*coarser, *symbols[internal:])
        rules = parts.numbers("fallback.rules", "I32", (None, 3), 0, len(own) - 1)
        _check_coarse(parts, "fallback.", rules, own, len(tags))
    if described.get("calibration"):
        parts.number_lists("calibration", least=2)
    if "usual" in described:
        for n, longest in enumerate(parts.number_list("usual.longest", least=1)):
            if longest != int(longest):
                raise parts.refused("usual.longest", "whole numbers", f"{longest} at {n}")
        parts.number_lists("usual.quantiles", least=1)
    if "tagger" in described:
        _check_tagger(parts, len(tags))
    if "rescoring" in described:
        check_layer(parts)


def _check_tagger(parts: Parts, tags: int) -> None:
    parts.number("tagger.gamma", 0, 1)
    rows = len(parts.tensor("tagger.weight", "I8", (None, tags)))
    parts.numbers("tagger.scale", "F16", (rows,), 0)
    if "word_classes" in parts.described:
        classes = parts.strings("word_classes")
        if classes:
            parts.tensor("tagger.class", "U16", (len(classes),))
