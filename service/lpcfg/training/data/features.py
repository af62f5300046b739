"""Compute the inside features φ and outside features ψ of every node (NAACL 3.1), as numbers.

`TEMPLATES` lists them. Every template that applies to a node gives it one feature, so each example
of a symbol is a row with one number per template ("there is no grandparent" is a value like any
other). A feature is an indicator. Its number stands for its template and value among the features
of its symbol, so the value does not repeat the symbol.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import TrainingError
from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Ints, Longs, frozen
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.heads import head_leaves, head_tags, levels
from lpcfg.training.data.treebank import Forest
from lpcfg.trees.binarize import is_intermediate

WIDTHS = np.array([0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40])
"""Lower bounds of the buckets of span widths. Widths of 5 and 6 words give the same value."""

ENDING = 3
"""Letters of a word's ending."""

HASHES = 1 << 62
"""The number of hashes of pairs that are too many for one number."""

Values = tuple[Longs, int]
"""For each of some nodes a value in [0, size), and the size."""


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """Examples with the derived arrays that templates use, per node. -1 marks a missing value."""

    examples: Examples

    @property
    def forest(self) -> Forest:
        return self.examples.forest

    @cached_property
    def production(self) -> Values:
        """The rule at the node: first the rules a → b c, then the rules a → x."""
        n_rules = self.examples.grammar.n_rules
        number = np.where(
            self.forest.is_leaf, n_rules + self.examples.node_entry, self.examples.node_rule
        )
        return number.astype(np.int64), n_rules + len(self.examples.grammar.entries)

    @cached_property
    def above(self) -> Values:
        """The rule above the node with the node's place in it; 0 at roots."""
        parent = self.forest.parent
        is_right = self.forest.right[parent] == np.arange(self.forest.n_nodes)
        rule = 1 + 2 * self.examples.node_rule[parent].astype(np.int64) + is_right
        return np.where(parent < 0, 0, rule), 1 + 2 * self.examples.grammar.n_rules

    @cached_property
    def parent_label(self) -> Values:
        parent = self.forest.parent
        label = 1 + self.forest.symbol[parent].astype(np.int64)
        return np.where(parent < 0, 0, label), 1 + len(self.forest.symbols)

    @cached_property
    def _levels(self) -> list[Longs]:
        return levels(self.forest)

    @cached_property
    def head(self) -> Ints:
        """The node's head leaf."""
        return head_leaves(self.forest, self._levels)

    @cached_property
    def head_tag(self) -> Values:
        tags, n_tags = head_tags(self.forest)
        return tags[self.forest.symbol[self.head]].astype(np.int64), n_tags

    @cached_property
    def other_head_tag(self) -> Values:
        """The tag of the first head on the way to the root that differs from the node's own head.

        It is the tag plus 1, or 0 if there is none. Only constituents count, not intermediate
        symbols.
        """
        forest, head = self.forest, self.head
        tag, n_tags = self.head_tag
        partial = np.array([is_intermediate(name) for name in forest.symbols])[forest.symbol]
        constituent = np.full(forest.n_nodes, -1, np.int64)
        result = np.zeros(forest.n_nodes, np.int64)
        for nodes in self._levels[1:]:
            parent = forest.parent[nodes]
            up = np.where(partial[parent], constituent[parent], parent)
            constituent[nodes] = up
            result[nodes] = np.where(head[up] == head[nodes], result[up], 1 + tag[up])
        return result, 1 + n_tags

    @cached_property
    def leaves(self) -> Longs:
        """The leaves of all trees, in the order of their words."""
        return np.flatnonzero(self.forest.is_leaf)

    @cached_property
    def word(self) -> Values:
        """The terminal of every leaf, plus 1; 0 at in-terminals."""
        grammar = self.examples.grammar
        terminal = np.append(grammar.entries[:, 1], -1)[self.examples.node_entry]
        return 1 + terminal.astype(np.int64), 1 + len(grammar.terminals)

    @cached_property
    def ending(self) -> Values:
        """The last three letters of every leaf's word, as a number above 0; 0 at in-terminals."""
        endings = [word.lower()[-ENDING:] for word in self.forest.words]
        distinct, number = np.unique(np.array(endings), return_inverse=True)
        return np.append(1 + number, 0)[self.forest.word].astype(np.int64), 1 + len(distinct)

    @cached_property
    def tree_length(self) -> Ints:
        """The number of words of the node's tree."""
        return self.forest.end[self.forest.roots][self.forest.tree]


def _at_place(of: NodeArrays, values: Values, place: Ints, least: Ints, end: Ints) -> Values:
    """Take the values at the leaf with this place in the node's tree; 0 outside of [least, end)."""
    codes, size = values
    first = np.searchsorted(of.forest.tree[of.leaves], np.arange(of.forest.n_trees))
    within = (place >= least) & (place < end)
    leaf = of.leaves[first[of.forest.tree] + np.where(within, place, 0)]
    return np.where(within, codes[leaf], 0), size


def _inner(of: NodeArrays, values: Values, offset: int) -> Values:
    """Take the values at the node's word with this place, 0 where it has fewer words."""
    start, end = of.forest.start, of.forest.end
    return _at_place(of, values, start + offset, start, end)


def _before(of: NodeArrays, values: Values) -> Values:
    return _at_place(of, values, of.forest.start - 1, np.zeros_like(of.tree_length), of.tree_length)


def _after(of: NodeArrays, values: Values) -> Values:
    return _at_place(of, values, of.forest.end, np.zeros_like(of.tree_length), of.tree_length)


def _pair(first: Values, second: Values) -> Values:
    (codes, size), (others, n_others) = first, second
    if size > np.iinfo(np.int64).max // n_others:
        return _hashed(codes, others), HASHES
    return codes * n_others + others, size * n_others


def _hashed(codes: Longs, others: Longs) -> Longs:
    """Number pairs that are too many for one number, alike in every part of a treebank.

    These are the steps of SplitMix64. Among ten million pairs, two have the same number with a
    probability of 1e-5.
    """
    mixed = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + others.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


def _at(values: Values, nodes: Ints) -> Values:
    """Take the values at other nodes, with one more value for missing nodes (-1)."""
    codes, size = values
    return np.where(nodes < 0, 0, 1 + codes[nodes]), 1 + size


def _width(words: Ints) -> Values:
    return np.searchsorted(WIDTHS, words, side="right").astype(np.int64) - 1, len(WIDTHS)


def _of_left(of: NodeArrays, values: Values) -> Values:
    return _at(values, of.forest.left)


def _of_right(of: NodeArrays, values: Values) -> Values:
    return _at(values, of.forest.right)


def _labels(of: NodeArrays) -> Values:
    return of.forest.symbol.astype(np.int64), len(of.forest.symbols)


def _left_words(of: NodeArrays) -> Values:
    left = of.forest.left
    return _width(of.forest.end[left] - of.forest.start[left])


def _fragment(of: NodeArrays, depth: int) -> Values:
    """Number the `depth` rules above the node, with its place in each."""
    fragment, ancestor = of.above, of.forest.parent
    for _ in range(depth - 1):
        fragment = _pair(fragment, _at(of.above, ancestor))
        ancestor = np.where(ancestor < 0, -1, of.forest.parent[ancestor])
    return fragment


def _parents(of: NodeArrays) -> Values:
    return _pair(of.parent_label, _at(of.parent_label, of.forest.parent))


@dataclass(frozen=True)
class Template:
    """A kind of feature.

    `values` gives a number to every node, even where the kind does not apply.
    """

    name: str
    example: str
    values: Callable[[NodeArrays], Values]

    @property
    def side(self) -> str:
        """inside, word (inside features of preterminals) or outside."""
        return self.name.partition(":")[0]


TEMPLATES = (
    Template("inside:left", "(VP, V)", lambda of: _of_left(of, _labels(of))),
    Template("inside:right", "(VP, NP)", lambda of: _of_right(of, _labels(of))),
    Template("inside:rule", "VP → V NP", lambda of: of.production),
    Template(
        "inside:rule-left",
        "(VP (V saw) NP)",
        lambda of: _pair(of.production, _of_left(of, of.production)),
    ),
    Template(
        "inside:rule-right",
        "(VP V (NP D N))",
        lambda of: _pair(of.production, _of_right(of, of.production)),
    ),
    Template("inside:left-head", "(VP, V)", lambda of: _of_left(of, of.head_tag)),
    Template("inside:left-words", "(VP, 1)", _left_words),
    Template("word:identity", "V → saw", lambda of: of.production),
    Template("outside:rule", "NP → D* N", lambda of: of.above),
    Template("outside:rules-2", "(VP V (NP D* N))", lambda of: _fragment(of, 2)),
    Template("outside:rules-3", "(S NP (VP V (NP D* N)))", lambda of: _fragment(of, 3)),
    Template("outside:parent", "(D, NP)", lambda of: of.parent_label),
    Template("outside:parents", "(D, NP, VP)", _parents),
    Template("outside:head", "N", lambda of: of.other_head_tag),
    Template("outside:left-words", "(D, 3)", lambda of: _width(of.forest.start)),
    Template("outside:right-words", "(D, 1)", lambda of: _width(of.tree_length - of.forest.end)),
)
"""Every template of NAACL 3.1, with its value in the paper's figure 1.

Inside templates are shown at VP (`word` ones at the preterminals), outside templates at the second
D.
"""

MORE_TEMPLATES = (
    Template("inside:first-word", "(VP, saw)", lambda of: _inner(of, of.word, 0)),
    Template("inside:second-word", "(VP, the)", lambda of: _inner(of, of.word, 1)),
    Template("inside:first-ending", "(VP, saw)", lambda of: _inner(of, of.ending, 0)),
    Template("word:ending", "(V, saw)", lambda of: of.ending),
    Template("outside:word-before", "(D, saw)", lambda of: _before(of, of.word)),
    Template("outside:word-after", "(D, dog)", lambda of: _after(of, of.word)),
    Template("outside:ending-before", "(D, saw)", lambda of: _before(of, of.ending)),
    Template("outside:ending-after", "(D, dog)", lambda of: _after(of, of.ending)),
)
"""Templates of words and their neighbours, which tagging uses and parsers by default do not."""

ALL_TEMPLATES = tuple(template.name for template in TEMPLATES)
"""The templates of the paper, which estimators use by default."""
KNOWN_TEMPLATES = (*ALL_TEMPLATES, *(template.name for template in MORE_TEMPLATES))
SIMPLE_TEMPLATES = ("inside:rule", "word:identity", "outside:rule")
"""The rule below the node and the rule above it: the simpler set of NAACL 4.3."""


def check_templates(names: Sequence[str]) -> None:
    """Raise TrainingError if there is no template of one of these names."""
    unknown = sorted(set(names) - set(KNOWN_TEMPLATES))
    if unknown:
        raise TrainingError(
            f"expected feature templates among {', '.join(KNOWN_TEMPLATES)}, "
            f"got {', '.join(unknown)}: name some of these"
        )


@dataclass(frozen=True, eq=False)
class Side:
    """The inside or outside features of a symbol's examples.

    Template t gives example e the feature `feature[e, t]`. Feature f is the value `code[f]` of
    template `template[f]`, and `count[f]` examples have it. Features are sorted by template, then
    by value; a value has the same code in all parts of a treebank.
    """

    feature: Ints
    template: Ints
    code: Longs
    count: Longs

    @property
    def n_features(self) -> int:
        return len(self.count)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of all nodes.

    The examples of symbol a are nodes[start[a] : start[a + 1]], in the forest's order.
    """

    n_internal: int
    nodes: Longs
    start: Longs
    columns: dict[str, list[Values]]

    @classmethod
    def of(cls, context: NodeArrays, names: Sequence[str]) -> "Features":
        """Compute the features of the templates with these names."""
        check_templates(names)
        forest = context.forest
        nodes = np.argsort(forest.symbol, kind="stable")
        bounds = np.arange(len(forest.symbols) + 1)
        start = np.searchsorted(forest.symbol[nodes], bounds)
        columns: dict[str, list[Values]] = {"inside": [], "word": [], "outside": []}
        for template in (*TEMPLATES, *MORE_TEMPLATES):
            if template.name in names:
                codes, size = template.values(context)
                columns[template.side].append((codes[nodes], size))
        return cls(forest.n_internal, frozen(nodes), frozen(start.astype(np.int64)), columns)

    @property
    def n_symbols(self) -> int:
        return len(self.start) - 1

    def inside(self, a: int) -> Side:
        """Return φ of the examples of symbol a."""
        return self._side(a, "inside" if a < self.n_internal else "word")

    def outside(self, a: int) -> Side:
        """Return ψ of the examples of symbol a."""
        return self._side(a, "outside")

    def _side(self, a: int, side: str) -> Side:
        examples = slice(self.start[a], self.start[a + 1])
        columns = self.columns[side]
        feature = np.empty((examples.stop - examples.start, len(columns)), np.int32)
        codes, counts = ([np.empty(0, np.int64)] for _ in range(2))
        n_features = 0
        for t, (values, size) in enumerate(columns):
            local, code, count = _numbered(values[examples], size)
            feature[:, t] = n_features + local
            n_features += len(count)
            codes.append(code)
            counts.append(count)
        template = np.repeat(np.arange(-1, len(columns), dtype=np.int32), list(map(len, codes)))
        return Side(feature, template, np.concatenate(codes), np.concatenate(counts))


def _numbered(codes: Longs, size: int) -> tuple[NDArray[np.integer], Longs, Longs]:
    """Renumber codes from 0 in their order.

    Return the numbers, the distinct codes and how often each occurs.
    """
    if size > 4 * len(codes):  # sorting is cheaper than a table of all values
        order = np.argsort(codes)
        local, distinct, count = (np.empty(len(codes), np.int64) for _ in range(3))
        n = _number_sorted(codes, order, local, distinct, count)
        return local, distinct[:n], count[:n]
    table = np.bincount(codes, minlength=size)
    number = np.cumsum(table > 0) - 1
    distinct = np.flatnonzero(table)
    return number[codes], distinct, table[distinct]


@compiled(borrows=True)
def _number_sorted(codes: Longs, order: Longs, local: Longs, distinct: Longs, count: Longs) -> int:
    """Write the number of every code, each distinct code and how often it occurs.

    `order` sorts the codes. Return how many distinct ones there are.
    """
    n = 0
    for k in order:
        if n == 0 or codes[k] != distinct[n - 1]:
            distinct[n] = codes[k]
            count[n] = 0
            n += 1
        count[n - 1] += 1
        local[k] = n - 1
    return n
