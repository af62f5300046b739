"""A known L-PCFG (t, q, π): read it from a file, sample trees from it, enumerate its trees.

Use it to try the theory: sample trees, train on them, and compare p(tree) with the true value.
The file is TOML:

    [states]                      # m of every symbol
    S = 2
    N = 1

    [root]                        # π: a number per state; all symbols together sum to 1
    S = [0.6, 0.4]

    [rules]                       # t: axes are (parent state, left state, right state)
    "S -> N N" = [[[0.7]], [[0.2]]]
    "S -> N S" = [[[0.1, 0.2]], [[0.3, 0.5]]]

    [words.N]                     # q: a number per state
    dog = [0.9]
    cat = [0.1]

For every state of a symbol, the numbers of all its rules, or of all its words, sum to 1. A symbol
has rules or words, never both.
"""

import tomllib
from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from lpcfg.base.errors import GrammarError, InputError
from lpcfg.grammar.tables import Doubles, Grammar, Tables
from lpcfg.trees.tree import Tree

SUM_TOLERANCE = 1e-6
"""How far a sum of probabilities may be from 1. Thirds written with six decimals are within it."""

_SECTIONS = ("states", "root", "rules", "words")
_PATIENCE = 1000  # sampling gives up after this many trees in a row beyond max_words


def sample_trees(tables: Tables, count: int, *, seed: int, max_words: int = 200) -> Iterator[Tree]:
    """Draw `count` s-trees from p(tree | at most max_words words). The same seed gives the same
    trees.

    Raises:
        GrammarError: unless the tables are an L-PCFG: C = t, c∞ = q, c¹ = π, with no negative
            number and with sums of 1
        InputError: if nearly all trees have more words
    """
    sampler = _Sampler.of(tables)
    random = Random(seed)
    for _ in range(count):
        for _ in range(_PATIENCE):
            tree = sampler.draw(random, max_words)
            if tree is not None:
                yield tree
                break
        else:
            raise InputError(
                f"expected trees of at most {max_words} words, got {_PATIENCE} longer ones in a "
                "row: raise the limit, or give recursive rules less probability"
            )


def check_probabilities(tables: Tables) -> None:
    """Refuse tables that are not an L-PCFG (t, q, π)."""
    for kind, numbers in (("t", _rule_sums(tables)), ("q", _word_sums(tables))):
        for (symbol, state), (lowest, total) in numbers.items():
            where = f"`{kind}` of state {state} of `{symbol}`"
            _check_distribution(where, lowest, total)
    root = np.asarray(tables.c_one, np.float64)
    _check_distribution("`π` of all symbols", float(root.min(initial=0.0)), float(root.sum()))


def _check_distribution(where: str, lowest: float, total: float) -> None:
    if lowest < 0:
        raise GrammarError(
            f"expected probabilities, got {lowest:g} in {where}: "
            "only an L-PCFG in its own parameters can be sampled"
        )
    if abs(total - 1) > SUM_TOLERANCE:
        raise GrammarError(
            f"expected the probabilities in {where} to sum to 1 within {SUM_TOLERANCE:g}, "
            f"got {total:.9g}: divide them by it"
        )


def _rule_sums(tables: Tables) -> dict[tuple[str, int], tuple[float, float]]:
    """Compute the least and the sum of the rule probabilities of each (in-terminal, state)."""
    grammar = tables.grammar
    sums = _no_sums(tables, range(grammar.n_internal))
    for r, (a, _, _) in enumerate(grammar.rules.tolist()):
        tensor = tables.dense(r)
        for h in range(tables.states[a]):
            least, total = sums[grammar.symbols[a], h]
            sums[grammar.symbols[a], h] = (
                min(least, float(tensor[h].min())),
                total + float(tensor[h].sum()),
            )
    return sums


def _word_sums(tables: Tables) -> dict[tuple[str, int], tuple[float, float]]:
    """Compute the least and the sum of the word probabilities of each (preterminal, state)."""
    grammar = tables.grammar
    sums = _no_sums(tables, range(grammar.n_internal, grammar.n_symbols))
    for e, (a, _) in enumerate(grammar.entries.tolist()):
        for h, q in enumerate(tables.terminal_vector(e).tolist()):
            least, total = sums[grammar.symbols[a], h]
            sums[grammar.symbols[a], h] = (min(least, q), total + q)
    return sums


def _no_sums(tables: Tables, symbols: range) -> dict[tuple[str, int], tuple[float, float]]:
    names = tables.grammar.symbols
    return {(names[a], h): (0.0, 0.0) for a in symbols for h in range(tables.states[a])}


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """The possible outcomes of one state of a symbol, with their probabilities.

    An outcome is a pair of states (left, right) or a word.
    """

    symbol: str
    outcomes: tuple[Any, ...]
    cumulative: tuple[float, ...]

    @classmethod
    def of(cls, symbol: str, outcomes: list[Any], weights: list[float]) -> "_Outcomes":
        possible = [(outcome, w) for outcome, w in zip(outcomes, weights, strict=True) if w > 0]
        total = sum(w for _, w in possible)
        cumulative = [w / total for w in accumulate(w for _, w in possible)]
        cumulative[-1] = 1.0  # rounding may leave it below 1, and random numbers reach almost 1
        return cls(symbol, tuple(outcome for outcome, _ in possible), tuple(cumulative))

    def draw(self, random: Random) -> Any:
        return self.outcomes[bisect(self.cumulative, random.random())]


@dataclass(frozen=True, eq=False)
class _Sampler:
    """The outcomes of all states. States are numbered in the order of c¹ (`tables.root_offset`)."""

    root: _Outcomes
    states: tuple[_Outcomes, ...]

    @classmethod
    def of(cls, tables: Tables) -> "_Sampler":
        check_probabilities(tables)
        grammar, offset = tables.grammar, tables.root_offset.tolist()
        names = np.repeat(np.arange(grammar.n_symbols), tables.states).tolist()
        outcomes: list[list[Any]] = [[] for _ in names]
        weights: list[list[float]] = [[] for _ in names]
        for r, (a, b, c) in enumerate(grammar.rules.tolist()):
            for (h1, h2, h3), t in np.ndenumerate(tables.dense(r)):
                outcomes[offset[a] + h1].append((offset[b] + h2, offset[c] + h3))
                weights[offset[a] + h1].append(float(t))
        for e, (a, x) in enumerate(grammar.entries.tolist()):
            for h, q in enumerate(tables.terminal_vector(e).tolist()):
                outcomes[offset[a] + h].append(grammar.terminals[x])
                weights[offset[a] + h].append(q)
        states = zip((grammar.symbols[a] for a in names), outcomes, weights, strict=True)
        root = _Outcomes.of("", list(range(len(names))), tables.c_one.tolist())
        return cls(root, tuple(_Outcomes.of(*state) for state in states))

    def draw(self, random: Random, max_words: int) -> Tree | None:
        """Draw one tree. Return None if it would have more than max_words words."""
        agenda: list[_Outcomes | str] = [self.states[self.root.draw(random)]]
        done: list[Tree] = []
        words = 1  # a lower bound: each state on the agenda will give at least one word
        while agenda:
            choice = agenda.pop()
            if isinstance(choice, str):  # a node's name: its two children are finished
                right, left = done.pop(), done.pop()
                done.append(Tree(choice, (left, right)))
                continue
            outcome = choice.draw(random)
            if isinstance(outcome, str):
                done.append(Tree(choice.symbol, word=outcome))
                continue
            words += 1
            if words > max_words:
                return None
            left_state, right_state = outcome
            agenda += (choice.symbol, self.states[right_state], self.states[left_state])
        return done.pop()


def enumerate_trees(tables: Tables, max_words: int) -> Iterator[tuple[Tree, float]]:
    """Yield every s-tree of at most max_words words with p(tree) ≠ 0, shortest first (figure 4).

    All trees are held in memory at once, so use this for small grammars or few words.
    """
    symbols = tables.grammar.symbols
    over: list[dict[int, list[tuple[Tree, Doubles]]]] = [{}]
    for length in range(1, max_words + 1):
        over.append(_leaf_trees(tables) if length == 1 else _trees_over(tables, over))
        for a in sorted(over[length], key=lambda a: symbols[a]):
            for tree, f in over[length][a]:
                probability = float(f @ tables.root_vector(a))
                if probability != 0:
                    yield tree, probability


def _leaf_trees(tables: Tables) -> dict[int, list[tuple[Tree, Doubles]]]:
    grammar = tables.grammar
    trees: dict[int, list[tuple[Tree, Doubles]]] = {}
    for e, (a, x) in enumerate(grammar.entries.tolist()):
        leaf = Tree(grammar.symbols[a], word=grammar.terminals[x])
        trees.setdefault(a, []).append((leaf, np.asarray(tables.terminal_vector(e), np.float64)))
    return trees


def _trees_over(
    tables: Tables, over: list[dict[int, list[tuple[Tree, Doubles]]]]
) -> dict[int, list[tuple[Tree, Doubles]]]:
    """Build every tree that has one word more than the longest so far, grouped by root symbol."""
    grammar = tables.grammar
    trees: dict[int, list[tuple[Tree, Doubles]]] = {}
    for r, (a, b, c) in enumerate(grammar.rules.tolist()):
        parent, left, right = tables.rule(r)
        for split in range(1, len(over)):
            for left_tree, f_left in over[split].get(b, ()):
                for right_tree, f_right in over[len(over) - split].get(c, ()):
                    f = ((left @ f_left) * (right @ f_right)) @ parent
                    tree = Tree(grammar.symbols[a], (left_tree, right_tree))
                    trees.setdefault(a, []).append((tree, f))
    return trees


def read_lpcfg(path: str | Path) -> Tables:
    """Read an L-PCFG from a TOML file, whose form the module's docstring shows.

    Raises:
        InputError: for a file that cannot be read or is not UTF-8
        GrammarError: for another form, or for probabilities that do not sum to 1
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"expected a readable grammar file, got {error.strerror!r} at {path}: check the path "
            "and its permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: expected UTF-8, got the byte 0x{error.object[error.start]:02x}: convert the "
            "file to UTF-8"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise GrammarError(f"{path}: expected TOML: {error}: correct the file") from error
    try:
        tables = _tables_of(document)
        check_probabilities(tables)
    except GrammarError as error:
        raise GrammarError(f"{path}: {error}") from error
    return tables


def _tables_of(document: Mapping[str, Any]) -> Tables:
    unknown = sorted(set(document) - set(_SECTIONS))
    if unknown:
        expected = ", ".join(f"[{name}]" for name in _SECTIONS)
        raise GrammarError(f"expected the sections {expected}, got `{unknown[0]}`: remove it")
    states = _table(document, "states")
    if not states:
        raise GrammarError(
            "expected symbols with numbers of states in [states], got none: write the grammar there"
        )
    sizes = {symbol: _size(symbol, states[symbol]) for symbol in states}
    rules = {_rule(text, sizes): (text, t) for text, t in _table(document, "rules").items()}
    words = {a: _table(_table(document, "words"), a, "words.") for a in _table(document, "words")}
    root = _table(document, "root")
    for name in (*words, *root):
        _check_symbol(name, sizes, "[words] and [root]")
    internal = {parent for parent, _, _ in rules}
    for both in sorted(internal & set(words)):
        raise GrammarError(
            f"expected rules or words for `{both}`, got both: take another symbol for its words"
        )
    names = [*sorted(internal), *sorted(set(sizes) - internal)]
    rule_order = sorted(rules, key=lambda rule: [names.index(symbol) for symbol in rule])
    word_order = sorted((word, names.index(a)) for a in words for word in words[a])
    return Tables.from_dense(
        _grammar(names, len(internal), rule_order, word_order),
        [sizes[name] for name in names],
        [
            _numbers(rules[rule][1], tuple(sizes[s] for s in rule), f"`{rules[rule][0]}`")
            for rule in rule_order
        ],
        [
            _numbers(words[names[a]][word], (sizes[names[a]],), f"`{word}` of [words.{names[a]}]")
            for word, a in word_order
        ],
        [_numbers(root.get(a, [0.0] * sizes[a]), (sizes[a],), f"`{a}` of [root]") for a in names],
    )


def _grammar(
    names: list[str],
    n_internal: int,
    rules: list[tuple[str, str, str]],
    words: list[tuple[str, int]],
) -> Grammar:
    terminals = sorted({word for word, _ in words})
    return Grammar(
        symbols=tuple(names),
        n_internal=n_internal,
        rules=np.array([[names.index(symbol) for symbol in rule] for rule in rules], np.int32),
        terminals=tuple(terminals),
        entries=np.array([(a, terminals.index(word)) for word, a in words], np.int32),
    )


def _table(document: Mapping[str, Any], name: str, above: str = "") -> Mapping[str, Any]:
    value = document.get(name, {})
    if not isinstance(value, dict):
        name = above + name
        raise GrammarError(f"expected a table [{name}], got {value!r}: write `[{name}]` above it")
    return value


def _size(symbol: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise GrammarError(
            f"expected a whole number of states for `{symbol}` in [states], got {value!r}: "
            "give it 1 or more"
        )
    return value


def _rule(text: str, sizes: Mapping[str, int]) -> tuple[str, str, str]:
    parent, arrow, children = text.partition("->")
    symbols = (parent.strip(), *children.split())
    if not arrow or len(symbols) != 3:
        raise GrammarError(
            f'expected rules like "S -> NP VP" in [rules], got "{text}": write a parent, an arrow '
            "and two children"
        )
    for symbol in symbols:
        _check_symbol(symbol, sizes, f'"{text}"')
    return symbols


def _check_symbol(name: str, sizes: Mapping[str, int], where: str) -> None:
    if name not in sizes:
        raise GrammarError(
            f"expected symbols of [states] in {where}, got `{name}`: give it a number of states"
        )


def _numbers(value: Any, shape: tuple[int, ...], where: str) -> Doubles:
    wanted = " x ".join(map(str, shape))
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise GrammarError(
            f"expected {wanted} numbers in nested lists for {where}, got {value!r}: write numbers "
            "alone, lists of one level equally long"
        ) from error
    if numbers.shape != shape:
        raise GrammarError(
            f"expected {wanted} numbers in nested lists for {where}, got "
            f"{' x '.join(map(str, numbers.shape)) or 'one'}: give every symbol as many as it has "
            "states"
        )
    if not np.isfinite(numbers).all():
        raise GrammarError(f"expected probabilities for {where}, got {value!r}: write finite ones")
    return numbers
