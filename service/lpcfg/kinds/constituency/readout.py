"""Read derivations of a chart as restored trees, labelled spans, tags and probabilities.

A symbol stands for its chain of labels: an item `S|VP` is an S and a VP over the same words. The
posterior of a label over a span is the sum over all items there that have the label.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from lpcfg.base.errors import InputError
from lpcfg.engine.pruned import kernels
from lpcfg.engine.pruned.decode import Derivation, derivation_log, single_tree
from lpcfg.engine.pruned.fine import Posteriors
from lpcfg.grammar.tables import Bools, Doubles, Grammar, Ints, Longs
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.results import (
    Cell,
    Constituent,
    Parse,
    SpanMarginal,
    Token,
    brackets_of,
)
from lpcfg.kinds.sentences import Sentence
from lpcfg.trees.binarize import split_chain
from lpcfg.trees.tree import Tree

Place = tuple[int | None, int | None]
_TINY = 1e-300
ROUNDING = 2e-4
"""The error of log p(x) in float32: five times the largest on 24 sentences of gum/dev."""
# Square brackets keep their own spelling, as in the treebanks.
_SPELLED_OUT = str.maketrans({"(": "-LRB-", ")": "-RRB-", "{": "-LCB-", "}": "-RCB-"})


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels in every symbol: its chain, top first; none in intermediate symbols.

    Labels of constituents and of tags are numbered separately. The labels of symbol a are
    `numbers[start[a] : start[a + 1]]`, and has[l, a] is True if a has label l.
    """

    chains: tuple[tuple[str, ...], ...]
    ids: dict[tuple[str, bool], int]
    start: Ints
    numbers: Ints
    has: Bools

    @classmethod
    def of(cls, grammar: Grammar) -> "Labels":
        chains = tuple(tuple(split_chain(symbol)) for symbol in grammar.symbols)
        ids: dict[tuple[str, bool], int] = {}
        numbers, start = [], [0]
        for a, chain in enumerate(chains):
            for depth, label in enumerate(chain):
                is_tag = a >= grammar.n_internal and depth == len(chain) - 1
                numbers.append(ids.setdefault((label, is_tag), len(ids)))
            start.append(len(numbers))
        has = np.zeros((len(ids), len(chains)), np.bool_)
        has[numbers, np.repeat(np.arange(len(chains)), np.diff(start))] = True
        return cls(chains, ids, np.array(start, np.int32), np.array(numbers, np.int32), has)

    @cached_property
    def seen(self) -> Bools:
        """Symbols that are constituents: neither intermediate nor plain tags."""
        labels = np.array([k for (_, is_tag), k in self.ids.items() if not is_tag], np.intp)
        seen: Bools = np.logical_or.reduce(self.has[labels], axis=0)
        return seen

    @cached_property
    def repeated(self) -> Bools:
        """Tell, for each of `numbers`, whether its symbol's chain had this label before."""
        chains = np.split(self.numbers, self.start[1:-1])
        return np.array(
            [x in chain[:at] for chain in chains for at, x in enumerate(chain)], np.bool_
        )

    @cached_property
    def of_symbols(self) -> tuple[Ints, Ints, Bools]:
        """The labels of all symbols in the kernels' form."""
        return self.start, self.numbers, self.repeated

    def spelled(self, symbols: Ints) -> tuple[Longs, Ints, Sequence[str]]:
        """List every constituent label in these symbols: its owner, its number, and all names.

        A label that a symbol's chain repeats is listed once.
        """
        sizes = self.start[symbols + 1] - self.start[symbols]
        rows = np.repeat(np.arange(len(symbols)), sizes)
        first = np.cumsum(sizes) - sizes
        at = self.start[symbols][rows] + np.arange(len(rows)) - first[rows]
        number = self.numbers[at]
        is_label = np.array([not is_tag for _, is_tag in self.ids], np.bool_)[number]
        listed = is_label & ~self.repeated[at]
        return rows[listed], number[listed], [name for name, _ in self.ids]

    def with_label(self, label: str, *, pointer: str = "") -> Bools:
        """Find the symbols that have this label above words. Errors use `pointer`."""
        if (label, False) not in self.ids:
            known = sorted(name for name, is_tag in self.ids if not is_tag)
            raise InputError(
                f"expected a label of the model's, got {label!r}: use one of {', '.join(known)}",
                pointer=pointer,
            )
        symbols: Bools = self.has[self.ids[label, False]]
        return symbols

    def trees(
        self, chart: kernels.Chart, items: Sequence[int] | Ints, words: Sequence[str]
    ) -> tuple[Tree, ...]:
        """Build the trees of items in pre-order: unfold chains, splice out intermediate symbols.

        There are several trees if the topmost symbol is itself intermediate.
        """
        at = np.asarray(items)
        left = iter(reversed(words))
        done: list[tuple[Tree, ...]] = []
        for symbol, is_word in zip(
            reversed(chart.symbol[at].tolist()),
            reversed((chart.entry[at] >= 0).tolist()),
            strict=True,
        ):
            chain = self.chains[symbol]
            if is_word:
                made: tuple[Tree, ...] = (Tree(chain[-1], (), next(left)),)
                chain = chain[:-1]
            else:
                made = done.pop() + done.pop()
            for label in reversed(chain):
                made = (Tree(label, made),)
            done.append(made)
        return done[0]


@dataclass(frozen=True, eq=False)
class Answers:
    """Reads trees and probabilities from the chart of one sentence."""

    sentence: Sentence
    labels: Labels
    probability: Callable[[kernels.Chart], tuple[int, float]]
    posteriors: Posteriors
    calibration: MonotoneMap | None

    def parse(self, derivation: Derivation) -> Parse:
        """Read the derivation: its tree, log p(tree), and the probability of every constituent."""
        measures = self.measures(derivation)
        return Parse(self.leaves(derivation), self.constituents(derivation), *measures)

    def leaves(self, derivation: Derivation) -> tuple[tuple[str, str], ...]:
        """Return the derivation's tags, each with its word."""
        chart, chains = self.posteriors.pruned.chart, self.labels.chains
        symbols = chart.symbol[derivation.items[chart.entry[derivation.items] >= 0]].tolist()
        words = as_words(self.sentence)
        return tuple(
            (chains[symbol][-1], word) for symbol, word in zip(symbols, words, strict=True)
        )

    def brackets(self, derivation: Derivation) -> str:
        """Write the derivation's tree."""
        return brackets_of(self.constituents(derivation), self.leaves(derivation))

    def measures(self, derivation: Derivation) -> tuple[float, int, float | None, float | None]:
        """Return score, sign, log p(tree) and p(tree | sentence)."""
        sign, log = self._probability(derivation)
        share = self._share(derivation, sign, log)
        return derivation.score, sign, log if sign else None, share

    def tokens(self, derivation: Derivation) -> tuple[Token, ...]:
        """Return the sentence's tokens with the derivation's tags."""
        chart, (begin, share, _) = self.posteriors.pruned.chart, self._shares
        items = derivation.items
        items = items[chart.entry[items] >= 0]
        symbols, last = chart.symbol[items], begin[items + 1] - 1
        # every word has one tag, so its tags' votes are divided by their sum
        leaves = np.flatnonzero(chart.entry >= 0)
        votes = np.bincount(chart.start[leaves], self.posteriors.item[leaves], len(items))
        shares = share[last] / np.maximum(votes, _TINY)
        chains = self.labels.chains
        return tuple(
            Token(text, start, end, chains[symbol][-1], share)
            for text, (start, end), symbol, share in zip(
                self.sentence.tokens,
                places(self.sentence),
                symbols.tolist(),
                np.minimum(shares, 1.0).tolist(),
                strict=True,
            )
        )

    def constituents(self, derivation: Derivation) -> tuple[Constituent, ...]:
        """Return the constituents of the derivation's tree in pre-order."""
        chart, (begin, share, _) = self.posteriors.pruned.chart, self._shares
        items = derivation.items
        # a word's last label is its tag
        sizes = begin[items + 1] - begin[items] - (chart.entry[items] >= 0)
        items, sizes = items[sizes > 0], sizes[sizes > 0]
        rows = np.repeat(begin[items] + sizes - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        shares = iter(self.calibrated(share[rows]).tolist())
        given, chains = places(self.sentence), self.labels.chains
        over = Extents.of(self.sentence).over
        return tuple(
            Constituent(
                label,
                start,
                end,
                given[start][0],
                given[end - 1][1],
                over(start, end),
                next(shares),
            )
            for symbol, start, end, size in zip(
                chart.symbol[items].tolist(),
                chart.start[items].tolist(),
                chart.end[items].tolist(),
                sizes.tolist(),
                strict=True,
            )
            for label in chains[symbol][:size]
        )

    @cached_property
    def _shares(self) -> tuple[Longs, Doubles, Doubles]:
        """The votes for every label of every item over its span, and what every item gains by them
        (see `kernels.label_shares`).
        """
        found = self.posteriors
        return kernels.label_shares(
            found.pruned.chart, found.item, self.labels.of_symbols, len(self.labels.ids)
        )

    def gains(self) -> Doubles:
        """Compute what every item adds under `max-spans`: p − ½ for each of its labels."""
        return self._shares[2]

    def calibrated(self, shares: Doubles) -> Doubles:
        """Cut votes off at 1, and apply the model's calibration map."""
        clipped = np.minimum(shares, 1.0)
        return clipped if self.calibration is None else self.calibration.apply(clipped)

    def _share(self, derivation: Derivation, sign: int, log: float) -> float | None:
        """Compute p(tree | sentence); None where it is no probability."""
        found = self.posteriors
        if found.rescored:
            return math.exp(derivation_log(found, derivation.items, derivation.edges))
        share = log - found.log_probability
        sound = sign == found.sign and share <= ROUNDING
        return math.exp(min(share, 0.0)) if sound else None

    def _probability(self, derivation: Derivation) -> tuple[int, float]:
        """Compute p(tree) as sign and log."""
        pruned = self.posteriors.pruned
        sign, log = self.probability(single_tree(pruned.chart, derivation.items, derivation.edges))
        return sign, log + pruned.log_scale


@dataclass(frozen=True, eq=False)
class SpanTable:
    """Posteriors of names (labels, or symbols) over spans: rows of name, start, end and numbers.

    `ratio` is the signed μ / p(x), `vote` what the members' magnitudes make of it (see `fine`);
    both are sums over the items that share the name and the span, each counted once however often
    its chain has the label. `uncalibrated` is the vote cut off at 1, `probability` the same after
    the model's calibration map.
    """

    names: Sequence[str]
    name: Ints
    start: Ints
    end: Ints
    ratio: Doubles
    vote: Doubles
    uncalibrated: Doubles
    probability: Doubles
    posteriors: Posteriors

    @classmethod
    def of(
        cls,
        posteriors: Posteriors,
        labels: Labels | None,
        grammar: Grammar,
        calibration: MonotoneMap | None,
    ) -> "SpanTable":
        """Sum over the items that share a label and a span, or over symbols if `labels` is None."""
        chart = posteriors.pruned.chart
        names: Sequence[str] = grammar.symbols
        rows, name = np.arange(len(chart.symbol)), chart.symbol
        if labels is not None:
            rows, name, names = labels.spelled(chart.symbol)
        outer_first = chart.start[rows] * (posteriors.pruned.length + 1) - chart.end[rows]
        keys = outer_first.astype(np.int64) * len(names) + name
        _, first, row_of = np.unique(keys, return_index=True, return_inverse=True)
        ratio, vote = (
            np.bincount(row_of, of_item[rows], len(first)).astype(np.float64)
            for of_item in (posteriors.ratio, posteriors.item)
        )
        uncalibrated: Doubles = np.minimum(vote, 1.0)
        items = rows[first]
        return cls(
            names,
            name[first],
            chart.start[items],
            chart.end[items],
            ratio,
            vote,
            uncalibrated,
            uncalibrated if calibration is None else calibration.apply(uncalibrated),
            posteriors,
        )

    def keys(self, rows: Longs) -> Iterator[tuple[str, int, int]]:
        """Yield name, start and end of some rows."""
        for name, start, end in zip(
            self.name[rows].tolist(),
            self.start[rows].tolist(),
            self.end[rows].tolist(),
            strict=True,
        ):
            yield self.names[name], start, end

    def spans(
        self, threshold: float, asked: Collection[tuple[int, int]] | None
    ) -> tuple[SpanMarginal, ...]:
        """Return the rows with at least the threshold, for the given spans, outer spans first."""
        whole, found = self.posteriors, []
        for row in np.flatnonzero(self.probability >= threshold).tolist():
            start, end = int(self.start[row]), int(self.end[row])
            if asked is not None and (start, end) not in asked:
                continue
            ratio = float(self.ratio[row])
            size = math.log(abs(ratio)) + whole.log_probability if ratio else -math.inf
            found.append(
                SpanMarginal(
                    self.names[self.name[row]],
                    start,
                    end,
                    float(self.probability[row]),
                    int(np.sign(ratio)) * whole.sign,
                    size,
                )
            )
        return tuple(found)

    def cells(self) -> tuple[Cell, ...]:
        """Return every span with the expected number of names over it."""
        places = np.stack([self.start, -self.end], axis=1)
        distinct, row_of = np.unique(places, axis=0, return_inverse=True)
        expected = np.bincount(row_of, self.uncalibrated, len(distinct))
        return tuple(
            Cell(start, -end, share)
            for (start, end), share in zip(distinct.tolist(), expected.tolist(), strict=True)
        )


def as_words(sentence: Sentence) -> list[str]:
    """Return the caller's tokens as trees can hold them, so that scoring finds the same words."""
    return [
        token if token.isalnum() else token.translate(_SPELLED_OUT) for token in sentence.tokens
    ]


def places(sentence: Sentence) -> Sequence[Place]:
    """Return the places of the sentence's tokens in its text, if it has one."""
    return sentence.offsets or [(None, None)] * len(sentence.tokens)


def constituents_of(tree: Tree, sentence: Sentence) -> tuple[Constituent, ...]:
    """Return the constituents of a tree in pre-order, without probabilities."""
    extents, given = Extents.of(sentence), places(sentence)
    found: list[Constituent] = []
    word = 0
    for node in tree.nodes():
        if node.is_leaf:
            word += 1
        else:
            end = word + len(node.tokens())
            place = given[word][0], given[end - 1][1]
            found.append(Constituent(node.label, word, end, *place, extents.over(word, end), None))
    return tuple(found)


class Extents(NamedTuple):
    """Places of the tokens of a sentence in its text.

    Tokens that came without a text have places in the line that they make with blanks between.
    """

    text: str
    begin: Sequence[int]
    end: Sequence[int]

    @classmethod
    def of(cls, sentence: Sentence) -> "Extents":
        if sentence.text is not None and sentence.offsets:
            first = sentence.start or 0
            begin = [start - first for start, _ in sentence.offsets]
            end = [stop - first for _, stop in sentence.offsets]
            return cls(sentence.text, begin, end)
        begin = list(accumulate((len(token) + 1 for token in sentence.tokens), initial=0))
        end = [stop - 1 for stop in begin[1:]]
        return cls(" ".join(sentence.tokens), begin, end)

    def over(self, start: int, end: int) -> str:
        """Return the text of some tokens."""
        return self.text[self.begin[start] : self.end[end - 1]]
