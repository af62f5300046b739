"""Compute the probability of a given tree: look up its rules and words in a grammar.

Gaps in the grammar are shown in brackets as in the caller's tree, never in symbols of s-trees: `(S
NP (VP VBD))` is an S over an NP and a VP that is over a VBD alone.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from lpcfg.base.errors import InputError
from lpcfg.engine.pruned.decode import derivation_log, edges_between
from lpcfg.engine.pruned.fine import Posteriors
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.grammar.tables import Emissions, Grammar
from lpcfg.trees.binarize import LEAF_MARK, SIBLING_MARK, is_intermediate, split_chain
from lpcfg.trees.brackets import read_string
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree

_SHOWN = 8
"""The most parts of a reason, and the most children and words it shows of a node."""
GivenTrees = str | Tree | Iterable[str | Tree]
"""A tree, text in Penn brackets, or several of them."""


def trees_of(given: GivenTrees) -> list[Tree]:
    """Read and normalize whatever `Parser.tree_probability` accepts."""
    if isinstance(given, str | Tree):
        given = [given]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise _no_tree(given)
    found = []
    for one in given:
        if not isinstance(one, str | Tree):
            raise _no_tree(one)
        for tree in [one] if isinstance(one, Tree) else read_string(one, source="tree"):
            normal = normalize(tree)
            if normal is None:
                raise InputError(
                    f"expected a tree that has words, got one of traces alone, {tree}: leave it out"
                )
            found.append(normal)
    return found


def _no_tree(given: object) -> InputError:
    return InputError(
        "expected a tree as an lpcfg.Tree or in brackets, or a list of those, got "
        f"{type(given).__name__}: give one of these"
    )


@dataclass(frozen=True, eq=False)
class Missing:
    """A rule, word or root the grammar lacks for a tree. `nodes` are its places, in pre-order."""

    reason: str
    nodes: tuple[int, ...]


def log_share(tree: Chart, found: Posteriors) -> float:
    """Compute log p(tree | sentence) of a tree's own chart under rescored posteriors; −inf if the
    sentence's chart does not have the tree.
    """
    chart = found.pruned.chart
    spans = zip(chart.symbol.tolist(), chart.start.tolist(), chart.end.tolist(), strict=True)
    place = {span: t for t, span in enumerate(spans)}
    asked = zip(tree.symbol.tolist(), tree.start.tolist(), tree.end.tolist(), strict=True)
    items = np.array([place.get(span, -1) for span in asked], np.int32)
    if items.min() < 0:
        return -math.inf
    return derivation_log(found, items, edges_between(chart, items))


def tree_chart(grammar: Grammar, stree: Tree, emissions: Emissions) -> Chart | Missing:
    """Build the chart that holds only an s-tree, or list what the grammar lacks for it.

    Its inside values are the words' weights; other items have none.
    """
    nodes = list(stree.nodes())
    n_items = len(nodes)
    symbol, start, end, entry = (np.full(n_items, -1, np.int32) for _ in range(4))
    inside, edge_start = np.zeros(n_items), np.zeros(n_items + 1, np.int64)
    edges: list[tuple[int, int, int]] = []
    done: list[int] = []
    word = emissions.length
    # backwards, so that an item comes after those it is made of
    for item, node in enumerate(reversed(nodes)):
        symbol[item] = _symbol(grammar, node)
        if node.is_leaf:
            word -= 1
            row = _row(emissions, word, int(symbol[item]))
            if row is None:
                return _missing(grammar, stree, emissions)
            start[item], end[item] = word, word + 1
            entry[item], inside[item] = emissions.entry[row], emissions.weight[row]
        else:
            left, right = done.pop(), done.pop()
            rule = grammar.rule_ids.get((int(symbol[item]), int(symbol[left]), int(symbol[right])))
            if rule is None:
                return _missing(grammar, stree, emissions)
            start[item], end[item] = start[left], end[right]
            edges.append((rule, left, right))
        done.append(item)
        edge_start[item + 1] = len(edges)
    rule_ids, left_items, right_items = np.array(edges, np.int32).reshape(-1, 3).T
    return Chart(
        symbol,
        start,
        end,
        entry,
        inside,
        edge_start,
        np.ascontiguousarray(rule_ids),
        np.ascontiguousarray(left_items),
        np.ascontiguousarray(right_items),
        np.zeros(len(edges)),
    )


def never_a_root(stree: Tree) -> Missing:
    """Describe a tree that the grammar can build, but only below other nodes."""
    return Missing(f"`{_brackets(split_chain(stree.label), ())}` is never a root", (0,))


def _row(emissions: Emissions, word: int, symbol: int) -> int | None:
    """Find the row of a word's emissions that has this symbol."""
    first, last = int(emissions.start[word]), int(emissions.start[word + 1])
    found = np.flatnonzero(emissions.symbol[first:last] == symbol)
    return first + int(found[0]) if len(found) else None


def _symbol(grammar: Grammar, node: Tree) -> int:
    """Find the grammar's number of a node's symbol (a marked leaf, or a rare sibling's), or -1."""
    ids = grammar.symbol_ids
    if node.is_leaf:
        return ids.get(node.label + LEAF_MARK, ids.get(node.label, -1))
    if node.label not in ids and is_intermediate(node.label):
        return ids.get(node.label.partition(SIBLING_MARK)[0], -1)
    return ids.get(node.label, -1)


# Diagnosis: runs only on trees that are known to have something missing ---------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """A node of an s-tree with all that binarization and collapsing made of it.

    `chain` are the labels it stands for, the top one at `place` in the tree's pre-order; `joints`
    are the nodes that join its first two children, three, and so on, itself the last; `word` is the
    number of its first word.
    """

    node: Tree
    chain: Sequence[str]
    joints: Sequence[Tree]
    place: int
    word: int

    @property
    def children(self) -> tuple[Tree, ...]:
        return self.joints[0].children[:1] + tuple(joint.children[1] for joint in self.joints)


def _parts(stree: Tree) -> Iterator[_Part]:
    place = word = 0
    stack = [stree]
    while stack:
        node = stack.pop()
        joints = [] if node.is_leaf else [node]
        while joints and is_intermediate(joints[-1].children[0].label):
            joints.append(joints[-1].children[0])
        part = _Part(node, split_chain(node.label), joints[::-1], place, word)
        yield part
        place += len(part.chain)
        if node.is_leaf:
            word += 1
        else:
            stack += reversed(part.children)


def _missing(grammar: Grammar, stree: Tree, emissions: Emissions) -> Missing:
    labels = {label for symbol in grammar.symbols for label in split_chain(symbol)}
    lacking = [one for part in _parts(stree) for one in _lacking(grammar, labels, part, emissions)]
    told = list(dict.fromkeys(text for _, text in lacking))
    more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return Missing(
        f"the grammar does not have {', '.join(told[:_SHOWN])}{more}",
        tuple(sorted({place for place, _ in lacking})),
    )


def _lacking(
    grammar: Grammar, labels: AbstractSet[str], part: _Part, emissions: Emissions
) -> Iterator[tuple[int, str]]:
    """Yield the gaps at a node, each with its place, without those that follow from a child's."""
    chain, bottom = part.chain, part.place + len(part.chain) - 1
    symbol = _symbol(grammar, part.node)
    unknown = [k for k, label in enumerate(chain) if label not in labels]
    if unknown:
        yield from ((part.place + k, f"the label `{chain[k]}`") for k in unknown)
    elif symbol < 0 and len(chain) > 1:
        yield part.place, f"the chain `{_brackets(chain, ())}` over {_quoted(part.node)}"
    elif part.node.is_leaf:
        if _row(emissions, part.word, symbol) is None:
            yield bottom, f"the word `{part.node.word}` as `{_brackets(chain, ())}`"
    else:
        for k, joint in enumerate(part.joints):
            a, b, c = (_symbol(grammar, one) for one in (joint, *joint.children))
            if b < 0 or c < 0:
                return
            if (a, b, c) not in grammar.rule_ids:
                yield bottom, _rule(part, k + 1)
                return


def _rule(part: _Part, at: int) -> str:
    """Write the rule of a node that cannot be built beyond its first `at` children."""
    chain = part.chain if at == len(part.joints) else part.chain[-1:]
    children, first = part.children, 0
    if len(children) > _SHOWN:
        first = min(max(0, at - _SHOWN // 2), len(children) - _SHOWN)
    shown = [_brackets(split_chain(one.label), ()) for one in children[first : first + _SHOWN]]
    before, after = ["…"] * (first > 0), ["…"] * (first + _SHOWN < len(children))
    rule = f"`{_brackets(chain, (*before, *shown, *after))}` over {_quoted(part.node)}"
    many = f" (missing at child {at + 1} of {len(children)})" if len(children) > 2 else ""
    return rule + many


def _brackets(chain: Sequence[str], inner: Sequence[str]) -> str:
    """Write `(S (VP VBD NP))` for the chain S, VP over VBD, NP; over nothing `(S VP)` or `VP`."""
    *above, bottom = chain
    text = f"({' '.join((bottom, *inner))})" if inner else bottom
    for label in reversed(above):
        text = f"({label} {text})"
    return text


def _quoted(node: Tree) -> str:
    """Quote the words of a node, without those in the middle if there are many."""
    words = node.tokens()
    if len(words) > _SHOWN:
        words = [*words[: _SHOWN - 3], "…", *words[-2:]]
    return f"“{' '.join(words)}”"
