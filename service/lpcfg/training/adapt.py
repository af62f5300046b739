"""Adapt a published model to a few trees of one's own, without the treebanks it was learned from.

A model already holds what this needs, and it is statistics: the counts of its words, the
probabilities of its rules and roots (its coarse tables), and the weights of its tag model.

- Words: own counts, OWN_WORDS times, join the base's. New words are known from then on.
- Rules and roots: q′(r) = (K q(r) + n(r)) / (K + n(a)) for r = a → b c seen n(r) times, which is
  the mean of a Dirichlet posterior whose prior is worth K = PRIOR nodes. Members' factors are
  multiplied by q′(r) / q(r), so that what they say of latent states stays as it was.
- Tags: the tag model goes on learning from the base's weights.
- The rescoring layer goes on learning as well, where there are enough trees (see
  `rescoring.adapting`).

Symbols and rules that the base does not have are left out and counted: for those, train anew.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lpcfg.base.errors import TrainingError
from lpcfg.engine.rescoring.layer import Layer
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.grammar.tables import Doubles, Floats, Ints, Longs, Tables, frozen
from lpcfg.grammar.tagging import FREQUENT, TagModel
from lpcfg.kinds.constituency.brackets import evaluate
from lpcfg.kinds.constituency.evaluate import calibration_facts, examine
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.store.versions import Reference, check_publishable, load, publish
from lpcfg.text.files import Source
from lpcfg.text.tokenize import penn_forms
from lpcfg.training.data.treebank import forest_of
from lpcfg.training.rescoring.adapting import Continued, continue_layer
from lpcfg.training.tagger import DROPOUT, learn_epoch
from lpcfg.trees.binarize import (
    LEAF_MARK,
    SIBLING_MARK,
    binarize,
    escape,
    is_intermediate,
    split_chain,
)
from lpcfg.trees.style import Style, read_normalized
from lpcfg.trees.tree import Tree

PRIOR = 1000.0
"""K, the nodes of a symbol that the base's rules are worth."""
OWN_WORDS = 2
"""How often an own word counts."""
EPOCHS = 4
"""Of the tag model, over own trees."""
SQUARES = 10.0
"""Adagrad's sum of squared gradients that the tag model's rows begin with: small first steps."""


@dataclass(frozen=True, eq=False)
class Adapted:
    """The adapted model, and the count of rules and words that the base does not have."""

    model: Model
    facts: Mapping[str, Any]


def adapt(base: Model, trees: Sequence[Tree], *, seed: int = 1) -> Adapted:
    """Adapt a model to a few trees. The same seed gives the same model.

    Args:
        base: the model.
        trees: normalized trees, in the style that it was learned in.
        seed: of random numbers.

    Raises:
        TrainingError: if there are no trees, or the base knows no unknown words.
    """
    if base.lexicon.rare_threshold == 0:
        raise TrainingError(
            "expected a base that can tag unknown words, got one with a literal lexicon: train it "
            "with a rare_threshold of 1 or more"
        )
    if not trees:
        raise TrainingError("expected trees to adapt to, got none: give some with words")
    own = _OwnCounts(base, trees)
    model, facts = _adapted(own, seed), own.facts()
    if model.rescoring is not None:
        continued = _continued(model, model.rescoring, base, trees, seed)
        if continued is not None:
            model = replace(model, rescoring=continued.layer)
            facts |= {"charts": continued.charts, "passes": continued.passes}
    return Adapted(model, facts)


def _adapted(own: "_OwnCounts", seed: int) -> Model:
    """Return the base with all but its layer adapted to these counts."""
    base = own.base
    lexicon = own.lexicon()
    rules, roots = own.rules(), own.roots()
    coarse = replace(base.coarse, parent=base.coarse.parent * rules, c_one=roots)
    model = replace(
        base,
        lexicon=lexicon,
        coarse=coarse,
        members=tuple(
            _scaled(member, rules, _ratio(roots, base.coarse.c_one)) for member in base.members
        ),
        tagger=None if base.tagger is None else _tagger(base.tagger, own, lexicon, seed),
    )
    if base.rescoring is not None:  # a stored layer takes its frequent words from the lexicon
        frequent = lexicon.seen_at_least(FREQUENT)
        model = replace(model, rescoring=replace(base.rescoring, frequent=frequent))
    return model


def _continued(
    model: Model, layer: Layer, base: Model, trees: Sequence[Tree], seed: int
) -> Continued | None:
    """Let the adapted model's layer learn from the trees."""

    def adapt_to(chosen: Longs) -> Model:
        return _adapted(_OwnCounts(base, [trees[k] for k in chosen]), seed)

    own = forest_of(binarize(tree, horizontal=model.horizontal) for tree in trees)
    with tempfile.TemporaryDirectory(prefix="lpcfg-charts-") as folder:
        return continue_layer(layer, own, adapt_to, Path(folder), seed=seed)


def adapt_and_publish(
    sources: Source | Sequence[Source],
    base: str,
    *,
    store: str | Path,
    name: str,
    style: Style | None = None,
    dev: Sequence[Source] = (),
    seed: int = 1,
    workers: int = 1,
) -> tuple[Reference, dict[str, Any]]:
    """Adapt a stored model to trees, and publish the result.

    Args:
        sources: files of trees.
        base: the stored model.
        store: the model store.
        name: the name of the new model there.
        style: that the trees are brought into; by default the one that the base was learned in.
        dev: files of trees to evaluate the new model on.
        seed: of random numbers.
        workers: processes that evaluate.

    Returns:
        The published version, and facts about it.

    Raises:
        StoreError: if there is no such base, or the store cannot be published to.
        TrainingError: if the base cannot be adapted, or there are no trees.
    """
    check_publishable(store, name)
    stored = load(base, store)
    facts: Any = dict(stored.manifest["facts"])  # type: ignore[call-overload]
    if style is None:
        style = Style.of(facts.get("configuration", {}).get("style", ()))
    gold = list(read_normalized(dev)) if dev else []
    adapted = adapt(from_bundle(stored), list(read_normalized(sources, style)), seed=seed)
    facts = {
        **facts,
        "base": {"model": str(stored.reference), "hash": stored.reference.hash},
        "adaptation": {**adapted.facts, "style": style.rules, "seed": seed},
        "dev": None,
    }
    if gold:
        examined = examine(Parser(adapted.model), gold, workers=workers)
        scores = evaluate(zip(gold, examined.trees, strict=True))
        facts["dev"] = {**scores.as_dict(), **calibration_facts(examined)}
    about = (
        f"# {name}\n\n{stored.reference}, adapted to {adapted.facts['trees']:,} trees of "
        f"{adapted.facts['words']:,} words. Below is the base's own card.\n\n{stored.card}"
    )
    bundle = to_bundle(adapted.model, facts=facts, card=about)
    return publish(store, name, bundle), facts


def _ratio(new: Doubles, old: Floats) -> Doubles:
    return np.divide(new, old, out=np.ones(len(new)), where=np.asarray(old) > 0)


def _scaled(member: Tables, rules: Doubles, roots: Doubles) -> Tables:
    """Return the member with every rule and root multiplied by its factor."""
    sizes = member.terms * member.states[member.grammar.rules[:, 0]]
    return replace(
        member,
        parent=(member.parent * np.repeat(rules, sizes)).astype(member.parent.dtype),
        c_one=member.c_one * np.repeat(roots, member.states),
    )


class _OwnCounts:
    """Counts of the base's symbols, rules and words in the new trees."""

    def __init__(self, base: Model, trees: Sequence[Tree]) -> None:
        self.base = base
        self.trees = trees
        self.rule: Counter[int] = Counter()
        self.root: Counter[int] = Counter()
        self.pair: Counter[tuple[int, str]] = Counter()
        self.left_out: Counter[str] = Counter(dict.fromkeys(("rules", "words"), 0))
        for tree in trees:
            self._add(binarize(tree, horizontal=base.horizontal))

    @cached_property
    def _symbols(self) -> Mapping[str, int]:
        return {name: a for a, name in enumerate(self.base.grammar.symbols)}

    @cached_property
    def _rules(self) -> Mapping[tuple[int, ...], int]:
        return {tuple(rule): r for r, rule in enumerate(self.base.grammar.rules.tolist())}

    def _symbol(self, node: Tree) -> int:
        """Find the base's symbol for a node; -1 if there is none."""
        names, label = self._symbols, node.label
        if node.word is not None:
            for name in (label, label + LEAF_MARK, *_tag_names(label)):
                if (a := names.get(name, -1)) >= self.base.grammar.n_internal:
                    return a
            return -1
        if label not in names and is_intermediate(label):
            label = label.partition(SIBLING_MARK)[0]
        return names.get(label, -1)

    def _add(self, stree: Tree) -> None:
        if (top := self._symbol(stree)) >= 0:
            self.root[top] += 1
        for node in stree.nodes():
            if node.word is None:
                family = (self._symbol(node), *map(self._symbol, node.children))
                r = self._rules.get(family, -1)
                self.rule[r] += r >= 0
                self.left_out["rules"] += r < 0
        for symbol, form in self._words(stree):
            self.pair[symbol, form] += symbol >= 0
            self.left_out["words"] += symbol < 0

    def _words(self, stree: Tree) -> Iterator[tuple[int, str]]:
        leaves = stree.leaves()
        tags = [split_chain(leaf.label)[-1] for leaf in leaves]
        forms = penn_forms([leaf.word or "" for leaf in leaves], tags)
        return zip(map(self._symbol, leaves), forms, strict=True)

    def rules(self) -> Doubles:
        """Compute q′(r) / q(r) of every rule."""
        grammar = self.base.grammar
        seen = np.zeros(grammar.n_rules)
        for r, n in self.rule.items():
            if n:
                seen[r] = n
        parent = grammar.rules[:, 0]
        of_parent = np.bincount(parent, seen, grammar.n_symbols)[parent]
        coarse = self.base.coarse
        q = coarse.parent * coarse.left * coarse.right
        return _ratio((PRIOR * q + seen) / (PRIOR + of_parent), q)

    def roots(self) -> Doubles:
        """Compute the probability of every symbol to be a root."""
        seen = np.zeros(self.base.grammar.n_symbols)
        for a, n in self.root.items():
            seen[a] = n
        # A root that the base never saw would have no vectors to go with it.
        seen[self.base.coarse.c_one == 0] = 0
        adapted: Doubles = (PRIOR * self.base.coarse.c_one + seen) / (PRIOR + seen.sum())
        return adapted

    def lexicon(self) -> Lexicon:
        """Return the base's lexicon with the own words added, each counted OWN_WORDS times."""
        base = self.base.lexicon
        pairs = {key: OWN_WORDS * n for key, n in self.pair.items() if n}
        new = sorted({word for _, word in pairs} - base.word_ids.keys())
        ids = {**base.word_ids, **{word: len(base.words) + k for k, word in enumerate(new)}}
        word = np.repeat(np.arange(len(base.words)), np.diff(base.word_start))
        own = np.array([(ids[w], a, n) for (a, w), n in pairs.items()], np.int64).reshape(-1, 3)
        rows = np.concatenate([np.stack([word, base.pair_symbol, base.pair_count], 1), own])
        keys, place = np.unique(rows[:, :2], axis=0, return_inverse=True)
        counts = np.bincount(place.reshape(-1), rows[:, 2]).astype(np.int32)
        terminals = [base.terminal_of_unknown(w) for w in new]
        return replace(
            base,
            words=(*base.words, *new),
            word_terminal=frozen(
                np.concatenate([base.word_terminal, np.array(terminals, np.int32)])
            ),
            word_start=frozen(
                np.searchsorted(keys[:, 0], np.arange(len(ids) + 1)).astype(np.int32)
            ),
            pair_symbol=frozen(keys[:, 1].astype(np.int32)),
            pair_count=frozen(counts),
            symbol_count=frozen(
                base.symbol_count
                + np.bincount(own[:, 1], own[:, 2], len(base.symbols)).astype(np.int64)
            ),
        )

    def tagged(self, lexicon: Lexicon) -> Iterator[tuple[list[str], list[int]]]:
        """List forms and tags of the trees in which the base has a tag for every word."""
        for tree in self.trees:
            words = list(self._words(binarize(tree)))
            if all(symbol >= 0 for symbol, _ in words):
                yield [form for _, form in words], [int(lexicon.tag_of[a]) for a, _ in words]

    def facts(self) -> dict[str, Any]:
        """Count what was learned from, and what of it the base has no symbols or rules for."""
        return {
            "trees": len(self.trees),
            "words": sum(self.pair.values()) + self.left_out["words"],
            "rules": sum(self.rule.values()) + self.left_out["rules"],
            "rules_left_out": self.left_out["rules"],
            "words_left_out": self.left_out["words"],
        }


def _tag_names(label: str) -> tuple[str, str]:
    """Return both names that a grammar may give to the tag of a leaf, the bottom of its chain.

    The leaf `NP|NN` has the tag NN. As a symbol it is `NN`, or NN with LEAF_MARK in a grammar that
    has NN over other nodes as well.
    """
    tag = escape(split_chain(label)[-1])
    return tag, tag + LEAF_MARK


def _tagger(base: TagModel, own: _OwnCounts, lexicon: Lexicon, seed: int) -> TagModel:
    """Train the base's tag model for some epochs on the own trees."""
    sentences = list(own.tagged(lexicon))
    frequent = base.frequent | lexicon.seen_at_least(FREQUENT)
    if not sentences:
        return replace(base, frequent=frequent)
    coder = replace(base, frequent=frequent)
    ids = {form: x for x, form in enumerate(sorted({f for forms, _ in sentences for f in forms}))}
    coded = np.array([coder.codes(form) for form in ids], np.int64)
    word: Ints = np.array([ids[form] for forms, _ in sentences for form in forms], np.int32)
    gold: Ints = np.array([tag for _, tags in sentences for tag in tags], np.int32)
    start = np.cumsum([0, *(len(forms) for forms, _ in sentences)])
    weight = base.weight.astype(np.float32) * base.scale.astype(np.float32)[:, None]
    squares = np.full(len(weight), SQUARES, np.float32)
    random = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        order, draw = random.permutation(len(sentences)), int(random.integers(1 << 48))
        learn_epoch(weight, squares, coded, word, gold, start, order, draw, DROPOUT, len(base.tags))
    return TagModel.rounded(base.tags, frequent, weight, base.gamma, base.classes)
