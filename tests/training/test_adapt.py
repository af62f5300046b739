"""Adapting a published model to a few trees."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.cli import main
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import sentence_from_tokens
from lpcfg.store.versions import list_models, load, publish
from lpcfg.training.adapt import OWN_WORDS, PRIOR, adapt
from lpcfg.training.data.treebank import forest_of
from lpcfg.training.rescoring.adapting import FEWEST, joined_to
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import parse_tree, write
from tests import small_models
from tests.small_layers import random_layer

OWN = parse_tree("(S (NP (DT the) (NN zorblatt)) (VP (VBD barked)) (. .))")


def test_rules_and_roots_are_the_mean_of_a_posterior() -> None:
    base = small_models.spectral()
    model = adapt(base, [OWN] * 50).model
    q, adapted = base.coarse.parent, model.coarse.parent
    parents = base.grammar.rules[:, 0]
    seen = np.round(adapted * (PRIOR + 50) - PRIOR * q) * (adapted != q)
    # Every constituent of the tree with two children has one rule, each seen in all 50 trees.
    assert Counter(seen[adapted > q].tolist()) == {50.0: np.count_nonzero(adapted > q)}
    sums = np.bincount(parents, adapted, base.grammar.n_symbols)
    np.testing.assert_allclose(sums, np.bincount(parents, q, base.grammar.n_symbols), rtol=1e-9)
    assert model.coarse.c_one.sum() == pytest.approx(1.0)


def test_members_rules_change_by_the_same_factor_as_the_coarse_ones() -> None:
    base = small_models.spectral()
    model = adapt(base, [OWN] * 50).model
    ratio = model.coarse.parent / base.coarse.parent
    for old, new in zip(base.members, model.members, strict=True):
        for r in range(base.grammar.n_rules):
            wanted = ratio[r] * old.dense(r)
            # float32 terms of both signs cancel: off by 2⁻²⁴ of the largest, times a few terms
            atol = 8 * 2.0**-24 * np.abs(wanted).max()
            np.testing.assert_allclose(new.dense(r), wanted, rtol=1e-6, atol=atol)


def test_own_words_are_known_from_then_on() -> None:
    base = small_models.spectral()
    model = adapt(base, [OWN] * 3).model
    assert "zorblatt" not in base.lexicon.word_ids
    x = model.lexicon.word_ids["zorblatt"]
    assert model.lexicon.word_count[x] == 3 * OWN_WORDS
    known = base.lexicon.word_ids["the"]
    grown = model.lexicon.word_count[known] - base.lexicon.word_count[known]
    assert grown == 3 * OWN_WORDS
    assert model.lexicon.n_tokens == int(model.lexicon.pair_count.sum())


def test_an_adapted_model_is_stored_and_parses_its_own_trees() -> None:
    model = adapt(small_models.spectral(), [OWN] * 20).model
    stored = from_bundle(to_bundle(model, facts={}, card=""))
    (analysis,) = Parser(stored).parse([sentence_from_tokens(OWN.tokens())])
    assert write(analysis.parses[0].tree) == write(OWN)


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = (adapt(small_models.spectral(), [OWN] * 5, seed=7).model for _ in range(2))
    assert first.tagger is not None
    assert second.tagger is not None
    np.testing.assert_array_equal(first.tagger.weight, second.tagger.weight)
    np.testing.assert_array_equal(first.members[0].parent, second.members[0].parent)


def test_what_the_base_has_no_symbols_for_is_counted() -> None:
    strange = parse_tree("(S (FOO (XYZ a) (NN dog)) (VP (VBD barked)) (. .))")
    facts = adapt(small_models.spectral(), [strange, OWN]).facts
    assert (facts["trees"], facts["words"], facts["words_left_out"]) == (2, 8, 1)
    assert facts["rules_left_out"] >= 2


def test_the_layer_goes_on_learning_from_own_trees() -> None:
    base = small_models.spectral()
    base = replace(base, rescoring=random_layer(base.grammar, seed=3))
    own = small_models.trees()[:FEWEST]

    def shares(model: Model) -> float:
        """Sum p(tree | sentence) of the own trees."""
        found = Parser(model).tree_probability(own)
        return sum(math.exp(one.conditional_log_probability or -math.inf) for one in found)

    few, many = adapt(base, own[1:]), adapt(base, own)
    assert "passes" not in few.facts
    assert few.model.rescoring is not None
    assert base.rescoring is not None
    np.testing.assert_array_equal(few.model.rescoring.weight.table, base.rescoring.weight.table)
    assert many.facts["charts"] > FEWEST / 2
    assert many.facts["passes"] > 0
    assert shares(many.model) > shares(few.model)


def test_symbols_that_the_base_lacks_have_numbers_beside_its_own() -> None:
    grammar = small_models.spectral().grammar
    own = forest_of([binarize(parse_tree("(S (FOO (XYZ a) (NN dog)) (VP (VBD barked)))"))])
    forest, joined = joined_to(own, grammar)
    assert joined.symbols == forest.symbols
    assert set(joined.symbols) == {*grammar.symbols, "FOO", "XYZ"}
    assert [forest.symbols[a] for a in forest.symbol] == [own.symbols[a] for a in own.symbol]
    assert [[joined.symbols[a] for a in rule] for rule in joined.rules] == [
        [grammar.symbols[a] for a in rule] for rule in grammar.rules
    ]


def test_nothing_to_adapt_to_and_a_literal_lexicon_are_refused() -> None:
    with pytest.raises(TrainingError, match="expected trees to adapt to, got none"):
        adapt(small_models.spectral(), [])
    with pytest.raises(TrainingError, match="literal lexicon"):
        adapt(small_models.counts(rare_threshold=0), [OWN])


def test_the_command_publishes_a_model_with_its_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = tmp_path / "own.mrg"
    bank.write_text(write(OWN) + "\n", encoding="utf-8")
    store = tmp_path / "store"
    publish(store, "base", to_bundle(small_models.spectral(), facts={}, card="The base."))
    options = [str(bank), "--base", "base", "--name", "mine", "--store", str(store)]
    assert main(["train", *options, "--dev", str(bank), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["base"]["model"] == "base@1"
    assert facts["dev"]["sentences"] == 1
    assert "The base." in load("mine", store).card
    assert main(["train", *options]) == 0
    assert "adapted to 1 trees of 4 words" in capsys.readouterr().out
    assert main(["train", *options, "--states", "4"]) == 2
    assert "`states`" in capsys.readouterr().err
    assert len(list_models(store)) == 3
