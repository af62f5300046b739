"""The spectral recipe in dictionaries and dense arrays: slow, and apart from the code it checks.

Features are described by nested tuples, straight from NAACL 3.1. Only the table of head rules and
the edges of the buckets are the package's own.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.training.data.features import WIDTHS
from lpcfg.training.data.heads import ENGLISH, FALLBACK
from lpcfg.trees.binarize import is_intermediate, split_chain, unescape
from lpcfg.trees.tree import Tree


@dataclass(eq=False)
class Node:
    """A node of an s-tree that knows where it is."""

    tree: Tree
    parent: "Node | None"
    start: int
    length: int
    children: list["Node"]

    @property
    def label(self) -> str:
        return self.tree.label

    @property
    def end(self) -> int:
        return self.start + len(self.tree.tokens())

    @property
    def rule(self) -> Hashable:
        if self.tree.word is not None:
            return (self.label, self.tree.word)
        return (self.label, *(child.label for child in self.children))


def nodes_of(tree: Tree) -> list[Node]:
    """List the nodes in post-order: left subtree, right subtree, node."""
    found: list[Node] = []

    def visit(subtree: Tree, parent: Node | None, start: int) -> Node:
        node = Node(subtree, parent, start, len(tree.tokens()), [])
        for child in subtree.children:
            node.children.append(visit(child, node, start))
            start += len(child.tokens())
        found.append(node)
        return node

    visit(tree, None, 0)
    return found


# Heads --------------------------------------------------------------------------------------------


def head_of_children(label: str, children: Sequence[str]) -> int:
    """Find the head among the children of an n-ary production."""
    groups = [group.split() for group in ENGLISH.get(label, FALLBACK).split(", ")]
    side = groups[0][0]
    content = [c for c in children if any(x.isalpha() for x in c)]
    content = [c for c in content if c not in {"-LRB-", "-RRB-", "HYPH"}]
    groups += [[side, *content], [side, *children]]
    for direction, *names in groups:
        places = range(len(children))
        for k in places if direction == "<" else reversed(places):
            if children[k] in names or ("=" in names and children[k] == label):
                return k
    raise AssertionError("the last group has every child")


def parts(node: Node) -> list[Node]:
    """List the children of the n-ary production that a node begins."""
    found: list[Node] = []
    for child in node.children:
        found += parts(child) if is_intermediate(child.label) else [child]
    return found


def head(node: Node) -> Node:
    """Find the head leaf."""
    if node.tree.word is not None:
        return node
    if is_intermediate(node.label):
        label = unescape(node.label[1:].partition("<")[0])
    else:
        label = split_chain(node.label)[-1]
    children = parts(node)
    return head(children[head_of_children(label, [split_chain(c.label)[0] for c in children])])


def tag(leaf: Node) -> str:
    return split_chain(leaf.label)[-1]


# Features -----------------------------------------------------------------------------------------


def bucket(words: int) -> int:
    return max(k for k, least in enumerate(WIDTHS) if words >= least)


def above(node: Node) -> Hashable:
    """Describe the rule above a node, with the node marked in it."""
    if node.parent is None:
        return None
    marked = [child.label + "*" * (child is node) for child in node.parent.children]
    return (node.parent.label, *marked)


def label_of(node: Node | None) -> str | None:
    return node.label if node else None


def ancestor(node: Node, steps: int) -> Node | None:
    up: Node | None = node
    for _ in range(steps):
        up = up.parent if up else None
    return up


def fragment(node: Node, depth: int) -> Hashable:
    ancestors = [ancestor(node, steps) for steps in range(depth)]
    return tuple(above(up) if up else "beyond the root" for up in ancestors)


def other_head(node: Node) -> str | None:
    own, up = head(node), node.parent
    while up is not None:
        if not is_intermediate(up.label) and head(up) is not own:
            return tag(head(up))
        up = up.parent
    return None


def inside_features(node: Node) -> dict[str, Hashable]:
    if node.tree.word is not None:
        return {"word:identity": node.rule}
    left, right = node.children
    return {
        "inside:left": left.label,
        "inside:right": right.label,
        "inside:rule": node.rule,
        "inside:rule-left": (node.rule, left.rule),
        "inside:rule-right": (node.rule, right.rule),
        "inside:left-head": tag(head(left)),
        "inside:left-words": bucket(left.end - left.start),
    }


def outside_features(node: Node) -> dict[str, Hashable]:
    return {
        "outside:rule": above(node),
        "outside:rules-2": fragment(node, 2),
        "outside:rules-3": fragment(node, 3),
        "outside:parent": label_of(node.parent),
        "outside:parents": (label_of(node.parent), label_of(ancestor(node, 2)))
        if node.parent
        else None,
        "outside:head": other_head(node),
        "outside:left-words": bucket(node.start),
        "outside:right-words": bucket(node.length - node.end),
    }


# Moments ------------------------------------------------------------------------------------------


def smoothed(z: np.ndarray, y2: np.ndarray, y3: np.ndarray, h, f2, f3, weight: float) -> np.ndarray:
    """Smooth a moment as NAACL 3.2 does, one formula per line."""
    n = len(z)
    e = sum(np.einsum("i,j,k->ijk", *row) for row in zip(z, y2, y3, strict=True)) / n
    e12 = sum(np.outer(a, b) for a, b in zip(z, y2, strict=True)) / n
    e13 = sum(np.outer(a, b) for a, b in zip(z, y3, strict=True)) / n
    e23 = sum(np.outer(a, b) for a, b in zip(y2, y3, strict=True)) / n
    e1, e2, e3 = sum(z) / n, sum(y2) / n, sum(y3) / n
    second = np.einsum("ij,k->ijk", e12, e3) / 3
    second += np.einsum("ik,j->ijk", e13, e2) / 3 + np.einsum("jk,i->ijk", e23, e1) / 3
    third = np.einsum("i,j,k->ijk", e1, e2, e3)
    fourth = np.einsum("i,j,k->ijk", h, f2, f3)
    back = weight * third + (1 - weight) * fourth
    return weight * e + (1 - weight) * (weight * second + (1 - weight) * back)


class Spectral:
    """The whole of it on a few trees: p(tree) under the tables that NAACL's recipe gives."""

    def __init__(
        self, trees: Sequence[Tree], states: int, kappa: float, back_off: float, lexical: float
    ) -> None:
        self.trees = [nodes_of(tree) for tree in trees]
        self.lexical = lexical
        self.back_off = back_off
        nodes = [node for tree in self.trees for node in tree]
        self.y: dict[Node, np.ndarray] = {}
        self.z: dict[Node, np.ndarray] = {}
        self.nodes: dict[str, list[Node]] = {}
        for node in nodes:
            self.nodes.setdefault(node.label, []).append(node)
        for examples in self.nodes.values():
            self._project(examples, states, kappa)
        self.rules: dict[Hashable, list[Node]] = {}
        for node in nodes:
            self.rules.setdefault(node.rule, []).append(node)
        self.f = {a: np.mean([self.y[v] for v in own], axis=0) for a, own in self.nodes.items()}
        self.h = {a: np.mean([self.z[v] for v in own], axis=0) for a, own in self.nodes.items()}

    def _project(self, examples: list[Node], states: int, kappa: float) -> None:
        phi = _scaled([inside_features(v) for v in examples], kappa)
        psi = _scaled([outside_features(v) for v in examples], kappa)
        u, s, vt = np.linalg.svd(phi.T @ psi / len(examples))
        m = int((s[:states] > 1e-3 * s[0]).sum())
        for v, y, z in zip(examples, phi @ u[:, :m], psi @ vt[:m].T / s[:m], strict=True):
            self.y[v], self.z[v] = y, z

    def probability(self, tree: Tree) -> float:
        *_, root = nodes_of(tree)
        inside = self._inside(root)
        roots = [self.y[nodes[-1]] for nodes in self.trees if nodes[-1].label == root.label]
        return float(inside @ np.sum(roots, axis=0)) / len(self.trees)

    def _inside(self, node: Node) -> np.ndarray:
        seen = self.rules[node.rule]
        share = len(seen) / len(self.nodes[node.label])
        root = math.sqrt(len(seen))
        if node.tree.word is not None:
            weight = root / (self.lexical + root)
            own = np.mean([self.z[v] for v in seen], axis=0)
            return share * (weight * own + (1 - weight) * self.h[node.label])
        z = np.array([self.z[v] for v in seen])
        y2, y3 = (np.array([self.y[v.children[side]] for v in seen]) for side in (0, 1))
        left, right = node.children
        tensor = smoothed(
            z, y2, y3, self.h[node.label], self.f[left.label], self.f[right.label],
            root / (self.back_off + root),
        )  # fmt: skip
        return share * np.einsum("ijk,j,k->i", tensor, self._inside(left), self._inside(right))


def _scaled(rows: list[dict[str, Hashable]], kappa: float) -> np.ndarray:
    counts = Counter(item for row in rows for item in row.items())
    matrix = np.zeros((len(rows), len(counts)))
    column = {item: k for k, item in enumerate(counts)}
    for k, row in enumerate(rows):
        for item in row.items():
            matrix[k, column[item]] = math.sqrt(len(rows) / (counts[item] + kappa))
    return matrix
