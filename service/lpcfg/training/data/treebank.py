"""Read a treebank into arrays: every node of every s-tree, coded by numbers.

Reading is spread over processes by cutting the text where no bracket is open. Names get their
numbers only after all chunks are read, in sorted order, so the forest is the same, byte for byte,
for any number of workers.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import TrainingError, TreebankError
from lpcfg.base.executors import Pool
from lpcfg.grammar.lexicon import ANY, Lexicon
from lpcfg.grammar.tables import Grammar, Ints, Longs, frozen
from lpcfg.text.files import Source, texts
from lpcfg.training.data.coding import CodedTrees, coded, coded_text, strees_in
from lpcfg.trees.binarize import LEAF_MARK, SIBLING_MARK, is_intermediate
from lpcfg.trees.brackets import MAX_DEPTH, without_malformed
from lpcfg.trees.style import AS_PUBLISHED, Style
from lpcfg.trees.tree import Tree

Bools = NDArray[np.bool_]

# Bytes of text per chunk: a seventh of GUM, so that two processes end at about the same time.
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Forest:
    """Every node of every s-tree, in arrays.

    The nodes of a tree are contiguous and in post-order: left subtree, right subtree, node. Symbols
    are in-terminals [0, n_internal), then preterminals, each sorted by name; words are sorted. A
    name that a treebank has both over words and over children is two symbols: the name itself for
    the in-terminal, and the name with LEAF_MARK for the preterminal.
    """

    symbols: tuple[str, ...]
    n_internal: int
    words: tuple[str, ...]
    symbol: Ints
    left: Ints  # -1 at leaves
    right: Ints  # -1 at leaves
    parent: Ints  # -1 at roots
    start: Ints  # the node's span is [start, end)
    end: Ints
    word: Ints  # -1 inside
    tree_start: Longs  # nodes of tree t are tree_start[t] : tree_start[t + 1], the root is the last
    source: Ints  # which of the sources each tree comes from
    left_out: tuple[str, ...] = ()  # the malformed trees: where, and what is wrong

    def __post_init__(self) -> None:
        nodes = ("symbol", "left", "right", "parent", "start", "end", "word")
        for name in (*nodes, "tree_start", "source"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def n_nodes(self) -> int:
        return len(self.symbol)

    @property
    def n_trees(self) -> int:
        return len(self.tree_start) - 1

    @cached_property
    def roots(self) -> Ints:
        """The root of every tree."""
        return frozen((self.tree_start[1:] - 1).astype(np.int32))

    @cached_property
    def tree(self) -> Ints:
        """The tree of every node."""
        trees = np.arange(self.n_trees, dtype=np.int32)
        return frozen(np.repeat(trees, np.diff(self.tree_start)))

    @cached_property
    def is_leaf(self) -> Bools:
        return frozen(self.word >= 0)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the trees themselves, in their order.

        It does not depend on files, layout, function tags, traces or markovization.
        """
        bare = [_unmarked(name) for name in self.symbols]
        names = sorted(set(bare))
        code = {name: c for c, name in enumerate(names)}
        symbol = np.array([code[name] for name in bare], "<i4")[self.symbol]
        digest = hashlib.sha256()
        for part in (names, self.words):
            digest.update("\n".join((*part, "")).encode("utf-8", "surrogatepass"))
        for codes in (symbol, self.word.astype("<i4"), self.tree_start.astype("<i8")):
            digest.update(codes.tobytes())
        return digest.hexdigest()


# Reading ------------------------------------------------------------------------------------------


def read_forest(
    sources: Source | Sequence[Source],
    *,
    horizontal: int = 0,
    sibling_threshold: int = 20,
    style: Style = AS_PUBLISHED,
    pool: Pool | None = None,
    max_depth: int = MAX_DEPTH,
    skip_bad: bool = False,
) -> Forest:
    """Read the forest of a treebank: its trees normalized, in a style, and binarized.

    With horizontal = 1, a sibling mark seen fewer than sibling_threshold times is dropped
    (`@VP<PP` → `@VP`). Trees that normalizing leaves empty are skipped.

    Args:
        sources: files of Penn brackets.
        horizontal: 1 marks intermediate symbols with their last child.
        sibling_threshold: how often a mark must be seen.
        style: rules that trees are brought into.
        pool: processes that read beside this one.
        max_depth: the deepest nesting of brackets in a tree.
        skip_bad: leave malformed trees out, and list them in `left_out`.

    Raises:
        TreebankError: if the text is not trees.
        TrainingError: if there are no trees to learn from.
    """
    pool = pool or Pool(1)
    named = [(k, *text) for k, source in enumerate(listed(sources)) for text in texts(source)]
    code = partial(coded_text, horizontal=horizontal, style=style, max_depth=max_depth)
    parts, source_of = _coded_chunks(named, code, pool)
    faults: Sequence[TreebankError] = ()
    if None in parts and skip_bad:
        named, faults = _sound(named, max_depth)
        parts, source_of = _coded_chunks(named, code, pool)
    elif None in parts:  # read again as a whole, for an error with file, line and column
        for _, name, text in named:
            coded(strees_in(text, name, horizontal, style, max_depth))
    where = ", ".join(name for _, name, _ in named) or "an empty list of sources"
    good = [(part, k) for part, k in zip(parts, source_of, strict=True) if part]
    forest = _merged([part for part, _ in good], [k for _, k in good], sibling_threshold, where)
    return replace(forest, left_out=tuple(map(str, faults))) if faults else forest


def _sound(
    named: Sequence[tuple[int, str, str]], max_depth: int
) -> tuple[list[tuple[int, str, str]], list[TreebankError]]:
    """Return texts without their malformed trees, where any are left, and an error for each."""
    sound, faults = [], []
    for k, name, text in named:
        kept, malformed = without_malformed(text, source=name, max_depth=max_depth)
        if kept.strip():
            sound.append((k, name, kept))
        faults += malformed
    return sound, faults


def _coded_chunks(
    named: Sequence[tuple[int, str, str]], code: "partial[CodedTrees | None]", pool: Pool
) -> "tuple[list[CodedTrees | None], list[int]]":
    """Code texts chunk by chunk; return the parts, and of which source each is."""
    chunks, source_of = [], []
    for k, _, text in named:
        for chunk in _chunks(text):
            chunks.append(chunk)
            source_of.append(k)
    pool.start(sum(map(len, chunks)), "lpcfg.training.pipeline")
    return pool.map(code, chunks), source_of


def forest_of(strees: Iterable[Tree]) -> Forest:
    """Build the forest of s-trees in memory."""
    return _merged([coded(strees)], [0], 0, "the s-trees given")


def listed(sources: Source | Sequence[Source]) -> Sequence[Source]:
    """Return the sources, one or several, as a list."""
    if isinstance(sources, str) or not isinstance(sources, Sequence):
        return [sources]
    return sources


def _chunks(text: str) -> Iterator[bytes]:
    """Cut the text into chunks of about _CHUNK bytes, before a '(' outside all brackets."""
    encoded = text.encode("utf-8", "surrogatepass")
    codes = np.frombuffer(encoded, np.uint8)
    step = (codes == ord("(")).view(np.int8) - (codes == ord(")")).view(np.int8)
    depth = np.cumsum(step, dtype=np.int32)
    tops = np.flatnonzero((depth == 1) & (step == 1))
    wanted = np.arange(_CHUNK, len(encoded), _CHUNK)
    nearest = np.searchsorted(tops, wanted)
    cuts = np.unique(tops[nearest[nearest < len(tops)]])
    bounds = [0, *cuts[cuts > 0].tolist(), len(encoded)]
    for k in range(len(bounds) - 1):
        yield encoded[bounds[k] : bounds[k + 1]]


# Codes to a forest --------------------------------------------------------------------------------


def _merged(
    parts: list[CodedTrees], source_of: Sequence[int], sibling_threshold: int, where: str
) -> Forest:
    sizes = np.concatenate([part.sizes for part in parts]) if parts else np.empty(0, np.int64)
    if not len(sizes):
        raise TrainingError(
            f"expected at least one tree with words in {where}, got none: "
            "give files of bracketed trees such as `(S (NP (DT the) (NN end)))`"
        )
    words, word = _united([part.words for part in parts], [part.word for part in parts])
    labels, label = _united([part.labels for part in parts], [part.label for part in parts])
    leaf = word >= 0
    labels, label = _without_rare_marks(labels, label, sibling_threshold)
    symbols, n_internal, symbol = _symbols(labels, label, leaf)
    tree_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    left, right, parent, start, end = _structure(leaf, tree_start)
    source = np.repeat(source_of, [len(part.sizes) for part in parts]).astype(np.int32)
    return Forest(
        *(symbols, n_internal, words, symbol, left, right, parent, start, end, word),
        *(tree_start, source),
    )


def _united(names: Sequence[Sequence[str]], codes: Sequence[Ints]) -> tuple[tuple[str, ...], Ints]:
    """Sort all names, and join all codes in the common numbering."""
    united = tuple(sorted({name for part in names for name in part}))
    number = {name: k for k, name in enumerate(united)}
    renamed = []
    for part, part_codes in zip(names, codes, strict=True):
        table = np.array([*(number[name] for name in part), -1], np.int32)  # -1 stays -1
        renamed.append(table[part_codes])
    return united, np.concatenate(renamed)


def _unmarked(symbol: str) -> str:
    """Remove a symbol's sibling mark: `@VP<PP` → `@VP`."""
    return symbol.partition(SIBLING_MARK)[0] if is_intermediate(symbol) else symbol


def _without_rare_marks(
    labels: tuple[str, ...], label: Ints, threshold: int
) -> tuple[tuple[str, ...], Ints]:
    counts = np.bincount(label, minlength=len(labels))
    bare = [
        _unmarked(name) if n < threshold else name for name, n in zip(labels, counts, strict=True)
    ]
    return _united([bare], [label])


def _symbols(
    labels: tuple[str, ...], label: Ints, leaf: Bools
) -> tuple[tuple[str, ...], int, Ints]:
    """Number in-terminals, then preterminals. A label that is both becomes two symbols."""
    inside = np.unique(label[~leaf])
    over = np.unique(label[leaf])
    both = np.isin(over, inside)
    internal = [labels[c] for c in inside]
    preterminal = [labels[c] + LEAF_MARK * int(b) for c, b in zip(over, both, strict=True)]
    order = sorted(range(len(over)), key=preterminal.__getitem__)
    table = np.empty((2, len(labels)), np.int32)
    table[0, inside] = np.arange(len(inside))
    table[1, over[order]] = len(inside) + np.arange(len(over))
    symbols = (*internal, *(preterminal[k] for k in order))
    return symbols, len(inside), table[leaf.astype(np.int8), label]


def _structure(leaf: Bools, tree_start: Longs) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Compute left, right, parent, start and end of every node.

    Post-order is a stack machine: a leaf pushes, and any other node takes two nodes off and pushes
    itself. So it ends at the height of its left child, the last node before it at that height; its
    right child is the node just before it.
    """
    n = len(leaf)
    tree = np.repeat(np.arange(len(tree_start) - 1), np.diff(tree_start))
    height = np.cumsum(np.where(leaf, 1, -1)) - tree
    order = np.argsort(height, kind="stable")
    before = np.empty(n, np.int32)
    before[order[1:]] = order[:-1]
    inside = np.flatnonzero(~leaf)
    left, right, parent = (np.full(n, -1, np.int32) for _ in range(3))
    left[inside] = before[inside]
    right[inside] = inside - 1
    parent[left[inside]] = inside
    parent[right[inside]] = inside
    leaves = np.cumsum(leaf)
    end = leaves - (leaves[tree_start[:-1]] - 1)[tree]
    # A node's left child, and its left child in turn, come before it at its height, back to a leaf.
    first = np.empty(n, np.int64)
    first[order] = order[np.maximum.accumulate(np.where(leaf[order], np.arange(n), 0))]
    return left, right, parent, (end[first] - 1).astype(np.int32), end.astype(np.int32)


def unmarked(forest: Forest) -> Forest:
    """Return the forest of the same trees without sibling marks (horizontal = 0)."""
    bare = [_unmarked(name) for name in forest.symbols[: forest.n_internal]]
    symbols = (*sorted(set(bare)), *forest.symbols[forest.n_internal :])
    number = {name: a for a, name in enumerate(symbols)}
    table = np.array([number[name] for name in (*bare, *symbols[len(set(bare)) :])], np.int32)
    n_internal = len(symbols) - len(forest.symbols) + forest.n_internal
    return replace(forest, symbols=symbols, n_internal=n_internal, symbol=table[forest.symbol])


def part_of(forest: Forest, trees: Ints | Longs) -> Forest:
    """Return the forest of these trees, in this order, with only their symbols and words.

    A tree that is named several times appears as often.
    """
    sizes = np.diff(forest.tree_start)[trees]
    tree_start = np.concatenate([[0], np.cumsum(sizes)])
    moved = np.repeat(forest.tree_start[trees] - tree_start[:-1], sizes)
    nodes = np.arange(len(moved)) + moved
    inside, symbol = _renumbered(forest.symbol[nodes], len(forest.symbols))
    seen, word = _renumbered(forest.word[nodes], len(forest.words))
    left, right, parent = (
        np.where(side[nodes] >= 0, side[nodes] - moved, -1).astype(np.int32)
        for side in (forest.left, forest.right, forest.parent)
    )
    return Forest(
        symbols=tuple(forest.symbols[a] for a in inside),
        n_internal=int((inside < forest.n_internal).sum()),
        words=tuple(forest.words[x] for x in seen),
        symbol=symbol,
        left=left,
        right=right,
        parent=parent,
        start=forest.start[nodes],
        end=forest.end[nodes],
        word=word,
        tree_start=tree_start,
        source=forest.source[trees],
    )


def first_words(forest: Forest, trees: int) -> list[str]:
    """Return the words of the first trees."""
    word = forest.word[: forest.tree_start[min(trees, forest.n_trees)]]
    return [forest.words[x] for x in word[word >= 0].tolist()]


def times_of(forest: Forest, source_weights: Sequence[int]) -> Ints:
    """Return how often each tree counts: by the weight of its source, or once without weights."""
    if not source_weights:
        return np.ones(forest.n_trees, np.int32)
    if forest.source.max() >= len(source_weights):
        raise TrainingError(
            f"expected a number in `emphasis` for each of {forest.source.max() + 1} treebanks, "
            f"got {len(source_weights)}: give one each, in the order of the treebanks"
        )
    return np.asarray(source_weights, np.int32)[forest.source]


def _renumbered(codes: Ints, size: int) -> tuple[Longs, Ints]:
    """Renumber the codes that occur.

    Return them in order, and all codes in new numbers; -1 stays -1.
    """
    distinct = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=size))
    table = np.full(size + 1, -1, np.int32)
    table[distinct] = np.arange(len(distinct))
    return distinct, table[codes]


def strees_of(forest: Forest) -> list[Tree]:
    """Return the s-trees of a forest, in order."""
    stack: list[Tree] = []
    for name, word in zip(forest.symbol.tolist(), forest.word.tolist(), strict=True):
        label = forest.symbols[name]
        if word >= 0:
            stack.append(Tree(label.removesuffix(LEAF_MARK), (), forest.words[word]))
        else:
            right = stack.pop()
            stack.append(Tree(label, (stack.pop(), right)))
    return stack


# The discrete grammar of a forest -----------------------------------------------------------------


def lexicon_of(forest: Forest, *, rare_threshold: int, language: str) -> Lexicon:
    """Build the lexicon of the forest's words under its preterminals."""
    leaves = np.flatnonzero(forest.is_leaf)
    pairs, counts = _distinct(forest.symbol[leaves], forest.word[leaves])
    return Lexicon.from_counts(
        forest.symbols,
        forest.words,
        pairs,
        counts.astype(np.int32),
        rare_threshold=rare_threshold,
        language=language,
    )


def rules_of(forest: Forest) -> Ints:
    """Return the binary rules a → b c of the forest, sorted."""
    rules, _ = _distinct(*_sides(forest, np.flatnonzero(~forest.is_leaf)))
    return rules


def grammar_of(forest: Forest, lexicon: Lexicon) -> Grammar:
    """Build the grammar of the forest's rules and entries, and a → ANY of every preterminal a."""
    leaves = np.flatnonzero(forest.is_leaf)
    terminal = lexicon.word_terminal[forest.word[leaves]]
    preterminal = forest.symbol[leaves]
    if ANY in lexicon.terminals:
        every = np.arange(forest.n_internal, len(forest.symbols), dtype=np.int32)
        preterminal = np.concatenate([preterminal, every])
        any_word = np.full(len(every), lexicon.terminals.index(ANY), np.int32)
        terminal = np.concatenate([terminal, any_word])
    entries, _ = _distinct(terminal, preterminal)
    return Grammar(
        forest.symbols, forest.n_internal, rules_of(forest), lexicon.terminals, entries[:, ::-1]
    )


def node_rules(forest: Forest, grammar: Grammar) -> Ints:
    """Return the rule at every in-terminal node, -1 at leaves."""
    inside = np.flatnonzero(~forest.is_leaf)
    result = np.full(forest.n_nodes, -1, np.int32)
    result[inside] = _rows_of(grammar.rules, np.stack(_sides(forest, inside), axis=1))
    return frozen(result)


def node_entries(forest: Forest, grammar: Grammar, lexicon: Lexicon) -> Ints:
    """Return the entry at every leaf, -1 inside."""
    leaves = np.flatnonzero(forest.is_leaf)
    terminal = lexicon.word_terminal[forest.word[leaves]]
    result = np.full(forest.n_nodes, -1, np.int32)
    wanted = np.stack([terminal, forest.symbol[leaves]], axis=1)
    result[leaves] = _rows_of(grammar.entries[:, ::-1], wanted)
    return frozen(result)


def _sides(forest: Forest, nodes: Longs) -> tuple[Ints, Ints, Ints]:
    symbol = forest.symbol
    return symbol[nodes], symbol[forest.left[nodes]], symbol[forest.right[nodes]]


def _distinct(*columns: Ints) -> tuple[Ints, Longs]:
    """Return the distinct rows of some columns, sorted, and how often each occurs."""
    base = 1 + max(int(column.max(initial=0)) for column in columns)
    keys, counts = np.unique(_keys(columns, base), return_counts=True)
    rows = np.empty((len(keys), len(columns)), np.int32)
    for k in reversed(range(len(columns))):
        keys, rows[:, k] = np.divmod(keys, base)
    return rows, counts


def _rows_of(rows: Ints, wanted: Ints) -> Ints:
    """Find each wanted row among sorted rows."""
    base = 1 + max(int(rows.max(initial=0)), int(wanted.max(initial=0)))
    known, keys = _keys([*rows.T], base), _keys([*wanted.T], base)
    row = np.searchsorted(known, keys)
    if (np.append(known, -1)[row] != keys).any():
        raise TrainingError(
            "expected the grammar made from this forest, got one without some of its rules: "
            "call grammar_of(forest, lexicon)"
        )
    return row.astype(np.int32)


def _keys(columns: Sequence[Ints], base: int) -> Longs:
    """Encode each row as one number, in the order of the rows."""
    keys = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        keys = keys * base + column
    return keys
