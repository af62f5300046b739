"""Bundle a treebank with its grammar: what every estimator learns from."""

from dataclasses import dataclass

from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Grammar, Ints
from lpcfg.training.data.treebank import Forest, grammar_of, node_entries, node_rules


@dataclass(frozen=True, eq=False)
class Examples:
    """A forest, its grammar, and what of the grammar every node is an example of.

    Node v has rule node_rule[v] if it is an in-terminal and entry node_entry[v] if it is a
    preterminal; the other number is -1.
    """

    forest: Forest
    grammar: Grammar
    node_rule: Ints
    node_entry: Ints

    @classmethod
    def of(cls, forest: Forest, lexicon: Lexicon) -> "Examples":
        """Code a forest by the grammar that is read off it."""
        grammar = grammar_of(forest, lexicon)
        rules, entries = node_rules(forest, grammar), node_entries(forest, grammar, lexicon)
        return cls(forest, grammar, rules, entries)
