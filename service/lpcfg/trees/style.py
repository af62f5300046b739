"""Bring treebanks of English that different people annotated into one style.

A rule changes normalized trees where one bank departs from the Penn guidelines that the others
follow. Rules are applied one after another, in the order of `RULES`; each says in its docstring
which bank it is for. None looks at more than a node, its parent and its siblings.

    style = Style.of(["w-words", "titles"])      the rules to apply
    style(tree)                                  the changed tree; None if nothing is left of it
    style.counts(trees)                          how often each rule changes these trees
    read_normalized(sources, style)              trees of files, normalized and in this style
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import is_not

from lpcfg.base.errors import InputError
from lpcfg.text.files import Source
from lpcfg.trees.brackets import MAX_DEPTH, read
from lpcfg.trees.normalize import ROOT, normalize
from lpcfg.trees.tree import Tree, bottom_up

Changed = tuple[Tree | None, int]
"""A tree, or None where nothing is left of it, and how many changes led to it."""

Children = tuple[Tree, ...]


def _everywhere(tree: Tree, change: Callable[[Tree], Sequence[Tree] | None]) -> Changed:
    """Replace every node by what `change` makes of it once its children are changed.

    None leaves a node as it is; an empty sequence removes it, and with it what then is empty.
    """
    changes = 0

    def combine(node: Tree, parts: list[Sequence[Tree]]) -> Sequence[Tree]:
        nonlocal changes
        children = tuple([new for part in parts for new in part])
        if parts and not children:
            return ()
        if len(children) != len(node.children) or any(map(is_not, children, node.children)):
            node = Tree(node.label, children)
        replaced = change(node)
        if replaced is None:
            return (node,)
        changes += 1
        return replaced

    roots = bottom_up(tree, combine)
    if len(roots) > 1:
        return Tree(ROOT, tuple(roots)), changes
    return (roots[0] if roots else None), changes


def _is_over(node: Tree, tags: frozenset[str]) -> bool:
    """Return True if the node's first word has one of these tags, directly below it."""
    return bool(node.children) and node.children[0].is_leaf and node.children[0].label in tags


def _relabelled(node: Tree, new_labels: Mapping[int, str]) -> Tree:
    """Return the node with other labels for some of its children."""
    return Tree(
        node.label,
        tuple(
            Tree(new_labels[k], child.children, child.word) if k in new_labels else child
            for k, child in enumerate(node.children)
        ),
    )


# Rules --------------------------------------------------------------------------------------------

_MARKUP = frozenset({"CODE", "SU"})


def markup(tree: Tree) -> Changed:
    """Remove marks of transcription that are no words, MASC's `(CODE <TURN>)` and `(SU /)`."""
    return _everywhere(tree, lambda node: () if node.is_leaf and node.label in _MARKUP else None)


_PLAIN_TAGS = {"-LSB-": "-LRB-", "-RSB-": "-RRB-", "NFP": ":", "AFX": "JJ", "XX": "FW", "NP": "NN"}
_SIGNS = frozenset({"=", "<", ">", "±"})


def tags(tree: Tree) -> Changed:
    """Give words the tags that all banks have.

    MASC's square brackets are brackets, AFX is an adjective, NFP a mark, XX foreign; GENIA's `=`
    and `<` are symbols, as CRAFT's and GUM's are.
    """

    def change(node: Tree) -> Sequence[Tree] | None:
        if node.word is None:
            return None
        tag = _PLAIN_TAGS.get(node.label)
        if node.word in _SIGNS and node.label in {"JJ", "JJR", "VBG", "RBR", "NN"}:
            tag = "SYM"
        return None if tag is None else (Tree(tag, (), node.word),)

    return _everywhere(tree, change)


_TITLES = frozenset({"CAPTION", "HEADING", "TITLE"})


def titles(tree: Tree) -> Changed:
    """Take off CRAFT's CAPTION, HEADING and TITLE; its CIT, a citation, is a PRN.

    One with several children becomes a FRAG.
    """

    def change(node: Tree) -> Sequence[Tree] | None:
        if node.label == "CIT" and node.children:
            return (Tree("PRN", node.children),)
        if node.label not in _TITLES or not node.children:
            return None
        return node.children if len(node.children) == 1 else (Tree("FRAG", node.children),)

    return _everywhere(tree, change)


_W_TAGS = frozenset({"WP", "WDT", "WP$"})
_CLAUSES = frozenset({"S", "SQ", "SINV", "VP", "FRAG"})


def w_words(tree: Tree) -> Changed:
    """Label a phrase of *who*, *which* or *that* WHNP where it opens a clause (GUM has NP)."""

    def change(node: Tree) -> Sequence[Tree] | None:
        if node.label not in {"SBAR", "SBARQ"}:
            return None
        new_labels = {
            k: "WHNP"
            for k, child in enumerate(node.children[:-1])
            if child.label == "NP"
            and _is_over(child, _W_TAGS)
            and any(later.label in _CLAUSES for later in node.children[k + 1 :])
        }
        return (_relabelled(node, new_labels),) if new_labels else None

    return _everywhere(tree, change)


def to(tree: Tree) -> Changed:
    """Tag the preposition *to* IN, as CRAFT and GUM do; the infinitive's stays TO."""

    def change(node: Tree) -> Sequence[Tree] | None:
        if node.label not in {"PP", "WHPP"}:
            return None
        new_labels = {k: "IN" for k, c in enumerate(node.children) if c.is_leaf and c.label == "TO"}
        return (_relabelled(node, new_labels),) if new_labels else None

    return _everywhere(tree, change)


_STOPS = frozenset({".", ":", "''", "``"})
_WHOLE = frozenset({"S", "SINV", "SQ", "SBARQ", "NP", "UCP", "FRAG"})


def inner_stops(tree: Tree) -> Changed:
    """Put the final mark into the clause beside it: GENIA's `(S (S …) (. .))` is `(S (S … (. .)))`.

    GENIA's train trees have the first, its dev trees the second. The clause may also be a noun
    phrase.
    """
    above: list[str] = []
    node = tree
    marks: Children = ()
    while tree.label == "S" and node.children:
        first, *others = node.children + marks
        if not first.children or (others and not _ends(first, others)):
            break
        above.append(node.label)
        node, marks = first, tuple(others)
    if not marks:
        return tree, 0
    changed = Tree(node.label, node.children + marks)
    for label in reversed(above):
        changed = Tree(label, (changed,))
    return changed, 1


def _ends(clause: Tree, others: Sequence[Tree]) -> bool:
    """Return True if this is a clause, and the others are final marks alone."""
    return clause.label in _WHOLE and all(mark.is_leaf and mark.label in _STOPS for mark in others)


_SENTENCES = frozenset({"S", "SINV", "SQ", "SBARQ"})


def stops(tree: Tree) -> Changed:
    """Put the final mark into the sentence that it ends: GENIA's `(S (S …) (. .))` is one S."""
    root, *marks = tree.children or (tree,)
    if (
        tree.label == "S"
        and root.label in _SENTENCES
        and root.children
        and all(mark.is_leaf and mark.label in _STOPS for mark in marks)
    ):
        return Tree(root.label, (*root.children, *marks)), 1
    return tree, 0


_HEADS = frozenset({"NN", "NNS", "NNP", "NNPS", "FW", "CD"})
_BEFORE_A_NOUN = _HEADS | {
    "DT",
    "PDT",
    "PRP$",
    "JJ",
    "JJR",
    "JJS",
    "VBN",
    "VBG",
    "POS",
    "HYPH",
    "SYM",
}
_COORDINATING = frozenset({"CC", "CONJP", ","})


def flat_nouns(tree: Tree) -> Changed:
    """Take off a noun phrase that is part of a compound: GENIA's `T cell (NP growth)`.

    It holds words alone and stands beside a word of the same phrase, in which nothing is
    coordinated. An NP over nothing but an NP is one NP.
    """

    def change(node: Tree) -> Sequence[Tree] | None:
        children = node.children
        if node.label != "NP" or not children:
            return None
        if len(children) == 1 and children[0].label == "NP" and children[0].children:
            return children
        if any(child.label in _COORDINATING for child in children):
            return None
        if not any(_is_part(children, k) for k in range(len(children))):
            return None
        parts = (c.children if _is_part(children, k) else (c,) for k, c in enumerate(children))
        return (Tree("NP", tuple(leaf for part in parts for leaf in part)),)

    return _everywhere(tree, change)


def _is_part(siblings: Children, k: int) -> bool:
    child = siblings[k]
    if child.label != "NP" or not child.children or not all(c.is_leaf for c in child.children):
        return False
    if not all(c.label in _BEFORE_A_NOUN for c in child.children):
        return False
    before = siblings[k - 1].label if k else ""
    behind = siblings[k + 1].label if k + 1 < len(siblings) else ""
    return before in _BEFORE_A_NOUN or behind in _HEADS


@dataclass(frozen=True)
class Rule:
    """A change to trees, and labels or words of which a tree that it changes has at least one."""

    change: Callable[[Tree], Changed]
    needs: frozenset[str]


RULES: Mapping[str, Rule] = {
    "markup": Rule(markup, _MARKUP),
    "tags": Rule(tags, _SIGNS | _PLAIN_TAGS.keys()),
    "titles": Rule(titles, _TITLES | {"CIT"}),
    "w-words": Rule(w_words, _W_TAGS),
    "to": Rule(to, frozenset({"TO"})),
    "inner-stops": Rule(inner_stops, _STOPS),
    "stops": Rule(stops, frozenset({"."})),
    "flat-nouns": Rule(flat_nouns, frozenset({"NP"})),
}
"""All rules by name, in the order in which they are applied."""
ALL = "all"


@dataclass(frozen=True)
class Style:
    """Some of the rules, by name and in their order. Without any, trees stay as they are."""

    rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> "Style":
        """Build the style of the rules with these names; `all` names every rule."""
        names = list(names)
        if unknown := [name for name in names if name not in {*RULES, ALL}]:
            raise InputError(
                f"expected rules of style among {', '.join(RULES)} or `{ALL}`, got "
                f"`{unknown[0]}`: correct it"
            )
        return cls(tuple(rule for rule in RULES if rule in names or ALL in names))

    def __call__(self, tree: Tree) -> Tree | None:
        """Bring a tree into this style; None if nothing is left of it."""
        return self._counted(tree, Counter())

    def counts(self, trees: Iterable[Tree]) -> Counter[str]:
        """Count how often each rule changes these trees if all are applied one after another."""
        changes: Counter[str] = Counter(dict.fromkeys(self.rules, 0))
        for tree in trees:
            self._counted(tree, changes)
        return changes

    def _counted(self, tree: Tree, changes: Counter[str]) -> Tree | None:
        if not self.rules:
            return tree
        has = {node.label for node in tree.nodes()} | {node.word for node in tree.leaves()}
        changed: Tree | None = tree
        for name in self.rules:
            if changed is not None and not RULES[name].needs.isdisjoint(has):
                changed, times = RULES[name].change(changed)
                changes[name] += times
        return changed


AS_PUBLISHED = Style()
"""No rule at all."""


def read_normalized(
    source: Source | Sequence[Source],
    style: Style = AS_PUBLISHED,
    *,
    max_depth: int = MAX_DEPTH,
) -> Iterator[Tree]:
    """Yield the trees of files, normalized and in a style."""
    return normalized(read(source, max_depth=max_depth), style)


def normalized(trees: Iterable[Tree], style: Style = AS_PUBLISHED) -> Iterator[Tree]:
    """Yield trees normalized and in a style; those of which nothing is left are left out."""
    for raw in trees:
        tree = normalize(raw)
        if tree is not None and (styled := style(tree)) is not None:
            yield styled
