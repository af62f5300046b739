"""Dependency trees as trees of an L-PCFG: every head is expanded outward into binary nodes.

With tag T of the head, and D, X any symbols of a finished phrase and of a head's own:

    T            the word itself, a preterminal
    T/R → X D    a right modifier D joins; X is T or T/R
    T/L → D X    a left modifier D joins; X is T, T/R or T/L
    D            a whole phrase: T', T'/R or T'/L of the modifier's tag T'

Right modifiers join before left ones, the nearest first, so a projective tree has exactly one
expansion, and `collapse` undoes it. Topology is generated with the words: a head has no further
modifier where its symbol is taken as it is. States belong to symbols, hence to tags, and every
estimator, inside-outside and decoding of this package work as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lpcfg.dependencies import eisner
from lpcfg.dependencies.arcs import ROOT_RELATION, UNKNOWN_RELATION, Arcs, modifiers
from lpcfg.engine.exact.inside_outside import inside, outside
from lpcfg.errors import InputError, TrainingError
from lpcfg.grammar.lexicon import Emitter, Lexicon
from lpcfg.grammar.tables import Doubles, Emissions, Grammar, Tables
from lpcfg.train.data.examples import Examples
from lpcfg.train.data.treebank import forest_of, lexicon_of
from lpcfg.train.estimators.registry import Facts, Job, estimator
from lpcfg.train.stages import Stages
from lpcfg.trees.binarize import escape
from lpcfg.trees.tree import Tree

RIGHT, LEFT = "/R", "/L"


def part_of_speech(tag: str) -> str:
    """Return the tag that symbols are made of: XPOS where there is one, else all of it."""
    first, _, last = tag.partition("|")
    return escape(last if last not in ("", "_") else first)


def expand(arcs: Arcs) -> Tree:
    """Return the s-tree of a projective dependency tree with tags."""
    if not arcs.tags or not arcs.is_projective:
        lacking = "without tags" if not arcs.tags else "that crosses others"
        raise InputError(
            f"expected a projective tree with tags, got one {lacking}: tag it, or lift its arcs "
            "with `projectivized`"
        )
    below = modifiers(arcs.heads)
    phrase: dict[int, Tree] = {}
    for word in eisner.bottom_up(np.array(arcs.heads, np.int64)).tolist():
        tag = part_of_speech(arcs.tags[word - 1])
        node = Tree(tag, (), arcs.words[word - 1])
        for m in (m for m in below[word] if m > word):
            node = Tree(tag + RIGHT, (node, phrase.pop(m)))
        for m in reversed([m for m in below[word] if m < word]):
            node = Tree(tag + LEFT, (phrase.pop(m), node))
        phrase[word] = node
    return phrase[arcs.root]


def collapse(tree: Tree) -> Arcs:
    """Return the dependency tree of an expansion; relations are not part of it."""
    leaves = tree.leaves()
    heads = [0] * len(leaves)
    position, done = len(leaves), list[int]()
    for node in reversed(list(tree.nodes())):
        if node.word is not None:
            done.append(position)
            position -= 1
            continue
        if len(node.children) != 2 or not node.label.endswith((RIGHT, LEFT)):
            raise InputError(
                f"expected two children under a label that ends in {RIGHT} or {LEFT}, got "
                f"{len(node.children)} under {node.label!r}: give a tree that `expand` made"
            )
        left, right = done.pop(), done.pop()
        head, modifier = (left, right) if node.label.endswith(RIGHT) else (right, left)
        heads[modifier - 1] = head
        done.append(head)
    labels = tuple(UNKNOWN_RELATION if head else ROOT_RELATION for head in heads)
    words = tuple(str(leaf.word) for leaf in leaves)
    return Arcs(words, tuple(heads), labels, tuple(leaf.label for leaf in leaves))


@dataclass(frozen=True, eq=False)
class Expanded:
    """An L-PCFG of expansions."""

    tables: Tables
    lexicon: Lexicon
    facts: Facts

    @property
    def grammar(self) -> Grammar:
        return self.tables.grammar


def learn(
    trees: Sequence[Arcs],
    name: str = "spectral",
    settings: object = None,
    *,
    rare_threshold: int = 3,
    language: str = "english",
    seed: int = 0,
    workers: int = 1,
) -> Expanded:
    """Learn an L-PCFG of projective dependency trees by any estimator of the package."""
    if not trees:
        raise TrainingError("expected dependency trees to learn from, got none: give some")
    forest = forest_of(map(expand, trees))
    lexicon = lexicon_of(forest, rare_threshold=rare_threshold, language=language)
    chosen = estimator(name)
    job = Job(Examples.of(forest, lexicon), seed, workers, Stages())
    tables, facts = chosen.estimate(job, chosen.settings() if settings is None else settings)
    return Expanded(tables, lexicon, facts)


def arc_marginals(expanded: Expanded, words: Sequence[str], tags: Sequence[str]) -> Doubles:
    """The posterior of every arc (h, m) of a sentence, given its words and tags: (n + 1, n + 1).

    A symbol over a span does not tell which of its words is the head. So every word gets symbols of
    its own, `NN#3`, `NN#3/R`, `NN#3/L`, with the parameters of its tag's: then rules name heads,
    and posteriors of rules, summed over spans, are those of arcs. O(n⁵): for tests and sentences of
    some 15 words.
    """
    own, emissions = _grounded(expanded, words, [part_of_speech(tag) for tag in tags])
    found = outside(inside(own, emissions))
    n = len(words)
    result = np.zeros((n + 1, n + 1))
    heads, modifiers_ = _arcs_of_rules(own.grammar)
    for width in range(2, n + 1):
        for split in range(1, width):
            posterior = found.rules(width, split).sum(axis=0)
            np.add.at(result, (heads, modifiers_), posterior)
    for a, symbol in enumerate(own.grammar.symbols):
        word = _word_of(symbol)
        result[0, word] += found.spans(n)[0, a] if n > 1 else found.spans(1)[0, a]
    return result


def minimum_risk_tree(marginals: Doubles) -> tuple[int, ...]:
    """Heads of the projective tree with the largest sum of arcs' posteriors."""
    return tuple(eisner.best_tree(marginals).tolist())


def _word_of(symbol: str) -> int:
    return int(symbol.rpartition("#")[2].partition("/")[0])


def _arcs_of_rules(grammar: Grammar) -> tuple[list[int], list[int]]:
    heads, modifiers_ = [], []
    for parent, left, right in grammar.rules.tolist():
        names = grammar.symbols[parent], grammar.symbols[left], grammar.symbols[right]
        heads.append(_word_of(names[0]))
        modifiers_.append(_word_of(names[2] if names[0].endswith(RIGHT) else names[1]))
    return heads, modifiers_


def _grounded(
    expanded: Expanded, words: Sequence[str], tags: Sequence[str]
) -> tuple[Tables, Emissions]:
    """Tables over symbols of single words, and these words' emissions."""
    given = Emitter(expanded.grammar, expanded.lexicon)(words, list(tags))
    tables, ids = expanded.tables, expanded.grammar.symbol_ids
    n = len(words)
    kinds = [(m, end) for end in (LEFT, RIGHT, "") for m in range(1, n + 1)]
    symbol_of = {
        kind: ids[tags[kind[0] - 1] + kind[1]]
        for kind in kinds
        if tags[kind[0] - 1] + kind[1] in ids
    }
    kinds = [kind for kind in kinds if kind in symbol_of]
    number = {kind: k for k, kind in enumerate(kinds)}
    internal = sum(end != "" for _, end in kinds)
    rules = _grounded_rules(kinds, symbol_of, expanded.grammar)
    order = sorted(rules, key=lambda rule: [number[kind] for kind in rule])
    own = Grammar(
        symbols=tuple(f"{tags[m - 1]}#{m}{end}" for m, end in kinds),
        n_internal=internal,
        rules=np.array([[number[kind] for kind in rule] for rule in order], np.int32),
        terminals=tuple(map(str, range(1, n + 1))),
        entries=np.array([(number[m, ""], m - 1) for m in range(1, n + 1)], np.int32),
    )
    return (
        Tables.from_dense(
            own,
            [int(tables.states[symbol_of[kind]]) for kind in kinds],
            [tables.dense(rules[rule]) for rule in order],
            [_emitted(tables, given, m, symbol_of[m + 1, ""]) for m in range(n)],
            [np.asarray(tables.root_vector(symbol_of[kind]), np.float64) for kind in kinds],
        ),
        Emissions(
            np.arange(n + 1, dtype=np.int32),
            own.entries[:, 0],
            np.arange(n, dtype=np.int32),
            np.ones(n),
        ),
    )


Kind = tuple[int, str]


def _grounded_rules(
    kinds: Sequence[Kind], symbol_of: dict[Kind, int], grammar: Grammar
) -> dict[tuple[Kind, Kind, Kind], int]:
    """Return every rule of words' own symbols, and the rule whose parameters it has."""
    result = {}
    for m, end in kinds:
        inner = [kind for kind in ((m, ""), (m, RIGHT), (m, LEFT)) if kind in symbol_of]
        for kind in kinds:
            if end == "" or kind[0] == m or (kind[0] > m) is not (end == RIGHT):
                continue
            for x in inner:
                rule = ((m, end), x, kind) if end == RIGHT else ((m, end), kind, x)
                key = symbol_of[rule[0]], symbol_of[rule[1]], symbol_of[rule[2]]
                if key in grammar.rule_ids:
                    result[rule] = grammar.rule_ids[key]
    return result


def _emitted(tables: Tables, given: Emissions, m: int, symbol: int) -> Doubles:
    """Return the vector of word m under its tag's preterminal."""
    total = np.zeros(int(tables.states[symbol]))
    for t in range(given.start[m], given.start[m + 1]):
        if given.symbol[t] == symbol:
            total += given.weight[t] * tables.terminal_vector(given.entry[t])
    return total
