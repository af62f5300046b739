"""Examples in which every word is a terminal, and treebanks that are hardly one."""

from lpcfg.training.data.examples import Examples
from lpcfg.training.data.treebank import Forest, lexicon_of

TINY = (
    "(S (NP (D the) (N end)) (VP (V is) (A near)))",
    "(X yes) (NP (N dogs)) (X no)",
    "(S (N dogs) (V bark))" * 30,
)


def coded(forest: Forest) -> Examples:
    """Code a forest by a grammar in which every word is a terminal."""
    lexicon = lexicon_of(forest, rare_threshold=0, language="neutral")
    return Examples.of(forest, lexicon)
