"""Hypothesis strategies for trees, both ordinary and very odd ones."""

from hypothesis import strategies as st

from lpcfg.trees.tree import Tree

NASTY_LABELS = (
    *("NP", "VP", "S", "NP-SBJ-1", "NP=2", "ADVP|PRT", "ADVP|PRT-CLR", "-LRB-", "-RRB-", "-NONE-"),
    *(
        "ROOT",
        "TOP",
        "|",
        "||",
        "@",
        "@VP",
        "@VP<PP",
        "<",
        "%",
        "%7C",
        "%257C",
        "-",
        "--",
        "=",
        "^",
    ),
    *("S^VP", "X-", "PRP$", "``", ":", ".", "Ñ", "e\u0301", "🙂", "\u00a0", "%40|@"),
)
NASTY_WORDS = (
    *("dog", "-LRB-", "-RRB-", "-LSB-", "[", "]", "{", "}", "a-LRB-s-RRB-", "*T*-1", "0", "@", "|"),
    *(
        "\\/",
        "%28",
        "e\u0301",
        "\u0301",
        "🙂",
        "👩\u200d🔬",
        "\u00a0",
        "10\u00a0000",
        "\u2028",
        "\x1c",
    ),
    *("\ufeff", "\x00", "Xpd TTD", "-NONE-"),
)
_BRACKETABLE = st.characters(exclude_characters=" \t\n\r\f\v()")


def labels() -> st.SearchStrategy[str]:
    """Draw labels that brackets can hold."""
    return st.sampled_from(NASTY_LABELS) | st.text(_BRACKETABLE, min_size=1, max_size=5)


def words() -> st.SearchStrategy[str]:
    """Draw words that brackets can hold."""
    return st.sampled_from(NASTY_WORDS) | st.text(_BRACKETABLE, min_size=1, max_size=5)


def chain(above: list[str], tree: Tree) -> Tree:
    """Put a tree under a unary chain of labels, top first."""
    for label in reversed(above):
        tree = Tree(label, (tree,))
    return tree


def _grow(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    families = st.lists(trees, min_size=1, max_size=5)
    narrow = st.builds(Tree, labels(), families.map(tuple))
    chains = st.builds(chain, st.lists(labels(), min_size=1, max_size=40), trees)
    return narrow | chains


def trees() -> st.SearchStrategy[Tree]:
    """Draw trees that brackets can hold."""
    leaves = st.builds(lambda label, word: Tree(label, (), word), labels(), words())
    few = st.lists(leaves, min_size=1, max_size=5)
    wide = st.builds(Tree, labels(), few.map(lambda family: tuple(family * 60)[:60]))
    return st.recursive(leaves | wide, _grow, max_leaves=12)


def treebank_trees() -> st.SearchStrategy[Tree]:
    """Draw trees of treebanks, most of them under an unlabelled bracket, ROOT or TOP."""
    wrapped = st.builds(
        Tree,
        st.sampled_from(("", "ROOT", "TOP")),
        st.lists(trees(), min_size=1, max_size=2).map(tuple),
    )
    return wrapped | trees()
