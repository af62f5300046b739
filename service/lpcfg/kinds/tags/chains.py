"""Turn tagged sentences into right-branching s-trees.

With t̄ = `t/>`, "tag t and what follows", the tags a b c over the words x y z become

    (ā (a x) (b̄ (b y) (c̄|c z)))

The last word stands alone under its t̄, as a unary chain. A refinement HMM with states h, that is
p(b, k | a, h) for the next tag and state and q(x | a, h) for the word, is the L-PCFG with

    C^{ā → a b̄}[h, h', k] = ⟦h = h'⟧ p(b, k | a, h)        c∞_{a → x}[h] = q(x | a, h)

Estimators do not hold h = h' fast; every C they return is scored as it is.
"""

from collections.abc import Sequence

from lpcfg.base.errors import InputError
from lpcfg.text.files import Source
from lpcfg.trees.binarize import escape
from lpcfg.trees.style import read_normalized
from lpcfg.trees.tree import Tree

REST = "/>"
"""Ends the symbol of a tag and what follows it."""

Tagged = tuple[Sequence[str], Sequence[str]]
"""The words of a sentence and their tags."""


def read(sources: Source | Sequence[Source]) -> list[Tagged]:
    """Read the words and tags of treebanks' trees."""
    leaves = (tree.leaves() for tree in read_normalized(sources))
    return [([leaf.word or "" for leaf in one], [leaf.label for leaf in one]) for one in leaves]


def chain(words: Sequence[str], tags: Sequence[str]) -> Tree:
    """Return the right-branching tree of a tagged sentence."""
    if not words or len(words) != len(tags):
        raise InputError(
            f"expected a tag for each of one or more words, got {len(tags)} tags for "
            f"{len(words)} words: give one each"
        )
    last = escape(tags[-1])
    tree = Tree(f"{last}{REST}|{last}", (), words[-1])
    for word, tag in zip(reversed(words[:-1]), reversed(tags[:-1]), strict=True):
        name = escape(tag)
        tree = Tree(name + REST, (Tree(name, (), word), tree))
    return tree
