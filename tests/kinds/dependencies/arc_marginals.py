"""Posteriors of arcs under an L-PCFG of expansions, by inside-outside: a proof that it works."""

from collections.abc import Sequence

import numpy as np
from benchmarks.dependency_trees.expanded import Expanded

from lpcfg.engine.exact.inside_outside import inside, outside
from lpcfg.grammar.lexicon import Emitter
from lpcfg.grammar.tables import Doubles, Emissions, Grammar, Tables
from lpcfg.kinds.dependencies.expansion import LEFT, RIGHT, part_of_speech


def arc_marginals(expanded: Expanded, words: Sequence[str], tags: Sequence[str]) -> Doubles:
    """Compute the posterior of every arc (h, m) of a sentence, given its words and tags: (n + 1, n
    + 1).

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
    """Build tables over symbols of single words, and these words' emissions."""
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
