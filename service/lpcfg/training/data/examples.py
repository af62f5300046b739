"""Bundle a treebank with its grammar: what every estimator learns from."""

from dataclasses import dataclass

from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Grammar, Ints
from lpcfg.training.data.treebank import Forest, grammar_of, node_entries, node_rules


@dataclass(frozen=True, eq=False)
class Examples:
    """A forest and its grammar. Every node is an example of one rule or entry of the grammar.

    An in-terminal v is an example of the rule a → b c with the number node_rule[v], a preterminal v
    of the entry a → x with the number node_entry[v]. The other of its two numbers is −1.
    """

    forest: Forest
    grammar: Grammar
    node_rule: Ints
    node_entry: Ints

    @classmethod
    def of(cls, forest: Forest, lexicon: Lexicon) -> "Examples":
        """Read the grammar off a forest, and number the rule or entry of every node."""
        grammar = grammar_of(forest, lexicon)
        rules, entries = node_rules(forest, grammar), node_entries(forest, grammar, lexicon)
        return cls(forest, grammar, rules, entries)
