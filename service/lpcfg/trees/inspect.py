"""Look through a treebank before anything is learned from it: sizes, labels, tags, odd trees."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lpcfg.text.files import Source
from lpcfg.text.languages import likely
from lpcfg.trees.brackets import read, write
from lpcfg.trees.normalize import ROOT, normalize
from lpcfg.trees.style import RULES, Style
from lpcfg.trees.tree import Tree

_LABELS = (
    "ADJP ADVP CONJP EDITED FRAG INTJ LST NAC NML NP NX PP PRN PRT QP ROOT RRC S SBAR SBARQ SINV "
    "SQ UCP VP WHADJP WHADVP WHNP WHPP X"
)
_TAGS = (
    "CC CD DT EX FW HYPH IN JJ JJR JJS LS MD NN NNP NNPS NNS PDT POS PRP PRP$ RB RBR RBS RP SYM "
    "TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB AFX ADD GW NFP XX `` '' , . : $ # -LRB- -RRB-"
)
PENN_LABELS, PENN_TAGS = frozenset(_LABELS.split()), frozenset(_TAGS.split())
LONG = 100
"""Words of a tree that is odd for its length."""
SHOWN = 3
"""Odd trees of a kind that are shown."""

ODD: Mapping[str, Callable[[Tree], bool]] = {
    "a word without a constituent": lambda tree: tree.is_leaf,
    f"over {LONG} words": lambda tree: len(tree.leaves()) > LONG,
    "several trees under one root": lambda tree: tree.label == ROOT,
    "a constituent over one of its own label and no other": lambda tree: any(
        len(node.children) == 1 and node.children[0].label == node.label for node in tree.nodes()
    ),
    "a label or tag that Penn treebanks do not have": lambda tree: any(
        node.label not in (PENN_TAGS if node.is_leaf else PENN_LABELS) for node in tree.nodes()
    ),
}
"""Kinds of trees that are worth a look, of normalized trees. Each may be right all the same."""


@dataclass
class Inspection:
    """Findings in some trees, counted as the trees come."""

    trees: int = 0
    empty: int = 0
    words: int = 0
    longest: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    vocabulary: Counter[str] = field(default_factory=Counter)
    style: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(RULES, 0)))
    odd: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in ODD})

    def add(self, raw: Tree) -> None:
        """Count a tree as it was read."""
        tree = normalize(raw)
        if tree is None:
            self.empty += 1
            return
        self.trees += 1
        leaves = tree.leaves()
        self.words += len(leaves)
        self.longest = max(self.longest, len(leaves))
        self.tags.update(leaf.label for leaf in leaves)
        self.vocabulary.update(leaf.word or "" for leaf in leaves)
        self.labels.update(node.label for node in tree.nodes() if not node.is_leaf)
        for kind, is_odd in ODD.items():
            if is_odd(tree):
                self.odd[kind].append(write(tree))

    @classmethod
    def of(cls, sources: Iterable[Source]) -> "Inspection":
        """Look through files. Each rule of style is counted on the trees as they are published."""
        result = cls()
        for raw in read(list(sources)):
            result.add(raw)
            tree = normalize(raw)
            if tree is not None:
                for rule in RULES:
                    result.style += Style((rule,)).counts([tree])
        return result

    def as_dict(self) -> dict[str, Any]:
        """Return what `lpcfg treebank --json` prints."""
        return {
            "trees": self.trees,
            "without_words": self.empty,
            "words": self.words,
            "language": likely(self.vocabulary.elements()),
            "distinct_words": len(self.vocabulary),
            "seen_once": sum(n == 1 for n in self.vocabulary.values()),
            "longest": self.longest,
            "labels": dict(self.labels.most_common()),
            "tags": dict(self.tags.most_common()),
            "style": {rule: self.style[rule] for rule in RULES},
            "odd": {kind: len(trees) for kind, trees in self.odd.items()},
        }

    def sizes(self) -> Iterator[str]:
        """Write lines of sizes, labels and tags, for people."""
        once = sum(n == 1 for n in self.vocabulary.values())
        yield f"{self.trees:,} trees of {self.words:,} words, {self.longest} in the longest"
        yield f"language: {likely(self.vocabulary.elements()) or 'too few words to tell'}"
        yield f"{len(self.vocabulary):,} distinct words, {once:,} of them seen once"
        for name, counts in (("labels", self.labels), ("tags", self.tags)):
            yield f"{len(counts)} {name}:"
            yield "  " + "  ".join(f"{label} {n:,}" for label, n in counts.most_common())

    def findings(self) -> Iterator[str]:
        """Write lines of odd trees, and of the changes that each rule of style would make, for
        people.
        """
        yield f"{self.trees:,} trees can be read; {self.empty} more have no words"
        for kind, trees in self.odd.items():
            yield f"{len(trees):,} trees: {kind}"
            yield from (f"    {tree[:120]}" for tree in trees[:SHOWN])
        strange = [*(self.labels.keys() - PENN_LABELS), *(self.tags.keys() - PENN_TAGS)]
        if strange:
            yield f"labels and tags that Penn treebanks do not have: {', '.join(sorted(strange))}"
        yield "the rules of --style would change, each by itself:"
        yield from (f"  {rule:12} {self.style[rule]:8,} places" for rule in RULES)
