"""Compute codes of names, from which features of the rescoring layer are hashed.

Numbers of symbols and rules differ from grammar to grammar, names do not, so a feature is made of
its names' codes: 64 bits mixed from a CRC-32. Sums and products of codes wrap around.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lpcfg.grammar.tables import Bools, Grammar, Ints, Longs, frozen
from lpcfg.trees.binarize import LEAF_MARK, SIBLING_MARK, is_intermediate, split_chain, unescape

_ODD, _OTHER = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9


class Names(NamedTuple):
    """Codes of a grammar's symbols and rules, with and without sibling marks (`@VP<PP`: `@VP`),
    and of preterminals' tags."""

    label: Longs
    marked: Longs
    rule: Longs
    marked_rule: Longs
    tag: Longs


class Heads(NamedTuple):
    """How heads are found in a grammar: rank[base[a], top[b]] says how much parent a wants child
    b, the lower the more, and rightmost[base[a], r] prefers the last of equals. `partial` symbols
    are intermediate: they pass on what they found so far."""

    base: Ints
    top: Ints
    partial: Bools
    rank: Ints
    rightmost: Bools


@dataclass(frozen=True, eq=False)
class HeadTable:
    """The same by labels: rank[l, m] and rightmost[l, r] of labels by their places."""

    labels: tuple[str, ...]
    rank: Ints
    rightmost: Bools

    def of(self, grammar: Grammar) -> Heads:
        """Return the table for the symbols of a grammar."""
        number = {label: row for row, label in enumerate(self.labels)}
        pairs = [labels_of(symbol) for symbol in grammar.symbols]
        base, top = np.array([[number[label] for label in pair] for pair in pairs], np.int32).T
        partial = np.array([is_intermediate(symbol) for symbol in grammar.symbols], np.bool_)
        return Heads(frozen(base), frozen(top), frozen(partial), self.rank, self.rightmost)


@dataclass(frozen=True, eq=False)
class RowNames:
    """Rows of tables, by name: tags, and symbols and rules without their sibling marks."""

    tags: tuple[str, ...]
    labels: tuple[str, ...]
    rules: tuple[str, ...]

    @classmethod
    def of(cls, grammar: Grammar) -> "RowNames":
        """Return a row for every name that a grammar has, in the order of the names."""
        bare = bare_symbols(grammar)
        tags = {tag_of(symbol) for symbol in grammar.symbols[grammar.n_internal :]}
        return cls(
            tuple(sorted(tags)), tuple(sorted(set(bare))), tuple(sorted(set(bare_rules(grammar))))
        )

    @cached_property
    def _numbers(self) -> tuple[dict[str, int], ...]:
        return tuple(
            {name: row for row, name in enumerate(names)}
            for names in (self.tags, self.labels, self.rules)
        )

    def tags_of(self, grammar: Grammar) -> Ints:
        """Return the row of every symbol's tag; one beyond the last for what has none."""
        return _looked_up(self._numbers[0], [tag_of(name) for name in grammar.symbols])

    def labels_of(self, grammar: Grammar) -> Ints:
        """Return the row of every symbol; one beyond the last for those unknown."""
        return _looked_up(self._numbers[1], bare_symbols(grammar))

    def rules_of(self, grammar: Grammar) -> Ints:
        """Return the row of every rule; one beyond the last for those unknown."""
        return _looked_up(self._numbers[2], bare_rules(grammar))


def _looked_up(numbers: dict[str, int], names: Sequence[str]) -> Ints:
    return frozen(np.array([numbers.get(name, len(numbers)) for name in names], np.int32))


def codes(names: Iterable[str]) -> Longs:
    """Return the code of every name."""
    return mixed(np.array([crc(name) for name in names], np.int64))


def crc(name: str) -> int:
    """Return the CRC-32 of a name."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


def mixed(numbers: Longs) -> Longs:
    """Spread small numbers over 64 bits."""
    x = (numbers + 1) * np.int64(_ODD)
    x ^= x >> 31
    x *= np.int64(_OTHER)
    x ^= x >> 29
    return x


def names_of(grammar: Grammar) -> Names:
    """Return the codes of a grammar."""
    return Names(
        label=frozen(codes(bare_symbols(grammar))),
        marked=frozen(codes(f"< {name}" for name in grammar.symbols)),
        rule=frozen(codes(bare_rules(grammar))),
        marked_rule=frozen(codes(f"< {name}" for name in _rules(grammar, grammar.symbols))),
        tag=frozen(codes(f"tag {tag_of(name)}" for name in grammar.symbols)),
    )


def bare_symbols(grammar: Grammar) -> list[str]:
    """Return the symbols without their sibling marks: `@VP<PP` gives `@VP`."""
    return [
        name.partition(SIBLING_MARK)[0] if is_intermediate(name) else name
        for name in grammar.symbols
    ]


def bare_rules(grammar: Grammar) -> list[str]:
    """Return the rules of symbols without marks, as text."""
    return _rules(grammar, bare_symbols(grammar))


def _rules(grammar: Grammar, names: Sequence[str]) -> list[str]:
    return [f"{names[a]} {names[b]} {names[c]}" for a, b, c in grammar.rules.tolist()]


def tag_of(symbol: str) -> str:
    """Return the tag at the bottom of a preterminal; nothing for an intermediate symbol."""
    return (split_chain(symbol) or [""])[-1]


def labels_of(symbol: str) -> tuple[str, str]:
    """Return the label of a symbol that chooses its head child, and the label its parent sees."""
    if is_intermediate(symbol):
        label = unescape(symbol[1:].partition(SIBLING_MARK)[0])
        return label, label
    chain = split_chain(symbol.removesuffix(LEAF_MARK))
    return chain[-1], chain[0]
