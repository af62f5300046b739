"""The rescoring layer: a conditional random field over the derivations of a pruned chart.

Of a chart (items t, edges e) of sentence x with the tensors' posteriors μ̂,

    s(d) = Σ_items g(t, x) + Σ_edges [g(e, x) + w₀ log(μ̂(e) / μ̂(item above e))] + w₀ log μ̂(root)
    p(d | x) = exp s(d) / Z

over its derivations d. g is the mean of two scores that were learned apart: of the sparse part
(`features`) and of the hidden part (`hidden`). With g = 0 and w₀ = 1, p is the Markov projection of
the tensors' posterior. Posteriors of items and edges under p take the place of the tensors'.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError
from lpcfg.engine.pruned.fine import Posteriors
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.engine.rescoring import chart as charts
from lpcfg.engine.rescoring.domains import Domains, code_of
from lpcfg.engine.rescoring.features import DOMAIN, N_CODES, PAD, TAG, sparse_scores
from lpcfg.engine.rescoring.hidden import (
    LENGTHS,
    POSITIONS,
    Hidden,
    gather,
    hidden_scores,
    sum_rows,
    write_row,
)
from lpcfg.engine.rescoring.names import HeadTable, RowNames, codes, names_of
from lpcfg.engine.rescoring.quantized import QuantizedWeights
from lpcfg.grammar.tables import Grammar, Ints, Longs, Singles
from lpcfg.grammar.tagging import shape
from lpcfg.text.tokenize import LONGEST_KEPT

SUFFIX = 3
"""Letters of a suffix."""
CACHED_WORDS = 100_000
"""Words whose codes are remembered, none longer than `LONGEST_KEPT`."""
CACHED_ROWS = 2_000
"""Words whose rows of the hidden part are remembered: 17 MB in `en`, and most words of a text."""
_BOUNDARY_CODES = codes(["before the first word", "after the last word"])


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of words, in bytes: row w is table[w] · scale[w]. Looked up as a word is written,
    then in lower case; a word without a row has zeros."""

    words: tuple[str, ...]
    table: NDArray[np.int8]
    scale: Singles

    @classmethod
    def of(cls, words: Sequence[str], vectors: Singles) -> "WordVectors":
        """Round vectors to 8 bits, with a scale for each word."""
        largest = np.abs(vectors).max(axis=1, initial=0.0)
        scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
        steps = np.rint(vectors / scale[:, None])
        return cls(tuple(words), steps.astype(np.int8), scale)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    def row(self, word: str) -> int:
        """Return the row of a word, one beyond the last if it has none."""
        row = self.rows.get(word)
        return self.rows.get(word.lower(), len(self.words)) if row is None else row

    def steps(self, row: int) -> tuple[NDArray[np.int8], float]:
        """Return the bytes in a row and their scale, which is 0 beyond the last row."""
        if row < len(self.words):
            return self.table[row], float(self.scale[row])
        return self.table[0], 0.0

    def take(self, rows: Longs) -> Singles:
        """Return the vectors in these rows, zeros beyond the last."""
        inside = np.minimum(rows, len(self.words) - 1)
        scale = np.where(rows < len(self.words), self.scale[inside], np.float32(0))
        return self.table[inside].astype(np.float32) * scale[:, None]


@dataclass(frozen=True, eq=False)
class Layer:
    """The learned parameters: weights of hashed features, and the hidden part with its words'
    vectors.

    `frequent` words have features of their own; others have only those of their shapes and ends.
    `rows` name the rows of the hidden part's tables, `suffixes` those of words' ends from row 1.
    `prior_weight` is w₀. Without `hidden`, there is only the sparse part; without `domains`, no
    sentence has a domain.
    """

    frequent: frozenset[str]
    heads: HeadTable
    rows: RowNames
    prior_weight: float
    weight: QuantizedWeights
    hidden: Hidden | None = None
    vectors: WordVectors | None = None
    suffixes: tuple[str, ...] = ()
    domains: Domains | None = None

    def __post_init__(self) -> None:
        size = len(self.weight.table)
        if self.weight.table.ndim != 1 or size & (size - 1) or not size:
            raise GrammarError(
                "expected as many weights of the rescoring layer as a power of two, got shape "
                f"{self.weight.table.shape}: publish the model again"
            )
        tables = {"weight": np.array([self.weight.largest])}
        if self.hidden is not None:
            tables |= self.hidden._asdict()
            self._check_shapes(self.hidden)
        for name, table in tables.items():
            if not np.isfinite(table).all():
                raise GrammarError(
                    f"expected finite numbers in `{name}` of the rescoring layer, got "
                    f"{table[~np.isfinite(table)][0]}: train the model again"
                )

    def _check_shapes(self, hidden: Hidden) -> None:
        if self.vectors is None:
            raise GrammarError("expected vectors of words for the hidden part, got none")
        width = hidden.label.shape[1]
        wanted = {
            "word": (self.vectors.table.shape[1], POSITIONS * width),
            "tag": (len(self.rows.tags) + 1, POSITIONS * width),
            "suffix": (len(self.suffixes) + 1, POSITIONS * width),
            "length": (3, LENGTHS, width),
            "label": (len(self.rows.labels) + 1, width),
            "rule": (len(self.rows.rules) + 1, width),
        }
        for name, shape_wanted in wanted.items():
            shape_found = getattr(hidden, name).shape
            if shape_found != shape_wanted:
                raise GrammarError(
                    f"expected `{name}` of the rescoring layer in shape {shape_wanted}, got "
                    f"{shape_found}: publish the model again"
                )


class WordFacts:
    """A cache of the facts about words that features use."""

    def __init__(
        self, frequent: frozenset[str], suffixes: Sequence[str], vectors: WordVectors | None
    ) -> None:
        self._frequent, self._vectors = frequent, vectors
        self._suffix_row = {end: row for row, end in enumerate(suffixes, start=1)}
        self._cache: dict[str, bytes] = {}

    def of(self, words: Sequence[str]) -> Longs:
        """Return six numbers for every word, (6, n).

        They are the codes of the word (or its shape and end), of its last letters, of its first
        letters and of its shape, then its rows of suffixes and of vectors.
        """
        facts = np.frombuffer(bytearray(b"".join(map(self._of, words))), np.int64)
        return facts.reshape(len(words), 6).T

    def _of(self, word: str) -> bytes:
        """Return the numbers of a word in bytes, which take less memory and are joined faster."""
        cached = self._cache.get(word)
        if cached is None:
            cached = self._facts(word)
            if len(word) <= LONGEST_KEPT:
                if len(self._cache) >= CACHED_WORDS:
                    self._cache.clear()
                self._cache[word] = cached
        return cached

    def _facts(self, word: str) -> bytes:
        end, form = suffix(word), shape(word)
        itself = f"w {word}" if word in self._frequent else f"s {form} {end}"
        coded = codes((itself, f"-3 {end}", f"+2 {word[:2]}", f"s {form}"))
        row = 0 if self._vectors is None else self._vectors.row(word)
        return np.array([*coded, self._suffix_row.get(end, 0), row], np.int64).tobytes()


def suffix(word: str) -> str:
    """Return the last letters of a word, in lower case."""
    return word.lower()[-SUFFIX:]


def padded_codes(words: Longs, tags: Longs, domain: int = 0) -> Longs:
    """Return the codes of words and tags, with those of the places beside the sentence, and of the
    sentence's domain.
    """
    n = len(tags)
    result = np.empty((N_CODES, n + 2 * PAD), np.int64)
    result[:TAG, PAD:-PAD] = words[:TAG]
    result[TAG, PAD:-PAD] = tags
    result[:, :PAD], result[:, -PAD:] = _BOUNDARY_CODES[0], _BOUNDARY_CODES[1]
    result[DOMAIN] = domain
    return result


class _RememberedRows:
    """Rows of words by suffix and vector; the first is that of what is beside a sentence."""

    def __init__(self, hidden: Hidden, most: int) -> None:
        self.table = np.empty((most, hidden.word.shape[1]), np.float32)
        self.table[0] = hidden.suffix[0]
        self.number: dict[tuple[int, int], int] = {}
        self.next = count(1)  # two threads never get the same number


class WordRows:
    """Rows of the hidden part for words. What tags do not change of a row is remembered."""

    def __init__(self, hidden: Hidden, vectors: WordVectors) -> None:
        self._hidden, self._vectors = hidden, vectors
        self._remembered = _RememberedRows(hidden, CACHED_ROWS)

    def with_tags(self, facts: Longs, tags: Ints) -> Singles:
        """Return the rows of all positions of the words, (n + 2 PAD, POSITIONS · H).

        What is beside the sentence has neither vectors nor suffixes, and the last tag.
        """
        keys = list(zip(facts[4].tolist(), facts[5].tolist(), strict=True))
        remembered = self._remembered
        while len(numbers := self._numbers(keys, remembered)) < len(keys):
            remembered = self._remembered = _RememberedRows(self._hidden, CACHED_ROWS + len(keys))
        rows, tag_rows = np.zeros((2, len(tags) + 2 * PAD), np.int64)
        rows[PAD:-PAD] = numbers
        tag_rows[:PAD] = tag_rows[-PAD:] = len(self._hidden.tag) - 1
        tag_rows[PAD:-PAD] = tags
        return sum_rows(remembered.table, rows, self._hidden.tag, tag_rows)

    def _numbers(self, keys: Sequence[tuple[int, int]], remembered: _RememberedRows) -> list[int]:
        """Return the numbers of the words' rows, up to the first that there is no room for."""
        numbers = []
        for key in keys:
            number = remembered.number.get(key)
            if number is None:
                number = next(remembered.next)
                if number >= len(remembered.table):
                    break
                start = self._hidden.suffix[key[0]]
                vector, scale = self._vectors.steps(key[1])
                write_row(start, vector, scale, self._hidden.word, remembered.table[number])
                remembered.number[key] = number
            numbers.append(number)
        return numbers


class Rescorer:
    """The layer, ready for the charts of one grammar."""

    def __init__(self, layer: Layer, grammar: Grammar) -> None:
        self._layer = layer
        self._names, self._heads = names_of(grammar), layer.heads.of(grammar)
        self._tag_row = layer.rows.tags_of(grammar)
        self._rows = layer.rows.labels_of(grammar), layer.rows.rules_of(grammar)
        self._facts = WordFacts(layer.frequent, layer.suffixes, layer.vectors)
        self._word_rows: WordRows | None = None
        if layer.hidden is not None and layer.vectors is not None:
            self._word_rows = WordRows(layer.hidden, layer.vectors)

    def rescored(self, posteriors: Posteriors, words: Sequence[str]) -> Posteriors:
        """Return the layer's posteriors of items and edges, in place of the tensors'."""
        chart, n = posteriors.pruned.chart, posteriors.pruned.length
        seen = charts.view(chart, posteriors.item, posteriors.edge, self._heads, n)
        facts = self._facts.of(words)
        domain = "" if self._layer.domains is None else self._layer.domains.guess(facts)
        item, edge = self._scores(chart, seen, facts, code_of(domain))
        edge += np.float32(self._layer.prior_weight) * seen.edge
        root = np.float32(self._layer.prior_weight) * seen.root
        _, of_item, of_edge = charts.inside_outside(chart, item, edge, root, n)
        return replace(posteriors, item=of_item, edge=of_edge, rescored=True, domain=domain)

    def _scores(
        self, chart: Chart, seen: charts.View, facts: Longs, domain: int
    ) -> tuple[Singles, Singles]:
        """Compute g of every item and edge, under the code of a domain."""
        layer = self._layer
        coded = padded_codes(facts, self._names.tag[seen.preterminal], domain)
        item, edge = sparse_scores(chart, (coded, seen.head), self._names, layer.weight.table)
        item, edge = layer.weight.unit * item, layer.weight.unit * edge
        if layer.hidden is not None and self._word_rows is not None:
            rows = self._word_rows.with_tags(facts, self._tag_row[seen.preterminal])
            sums = gather(rows, facts.shape[1], layer.hidden.label.shape[1])
            others = hidden_scores(chart, seen.head, sums, layer.hidden, self._rows)
            half = np.float32(0.5)
            item, edge = half * (item + others[0]), half * (edge + others[1])
        return item, edge
