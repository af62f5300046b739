"""Tags come with probabilities, in the order of words; models are stored and come back."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import InputError, StoreError, TrainingError
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.sentences import Sentence
from lpcfg.kinds.tags.chains import Tagged, read
from lpcfg.kinds.tags.evaluate import evaluate
from lpcfg.kinds.tags.kernel import forward_backward
from lpcfg.kinds.tags.model import from_bundle, to_bundle
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.kinds.tags.train import Config, estimator_of, learn, train_and_publish
from lpcfg.store.versions import load
from tests import small_models

SMALL = small_models.SMALL


@cache
def gold() -> list[Tagged]:
    return read(SMALL)


@cache
def model(neighbours: bool = True) -> Model:
    return learn(gold(), Config(estimator_of("spectral", states=4), neighbours))[0]


@cache
def tagger(neighbours: bool = True) -> SequenceTagger:
    return SequenceTagger(model(neighbours))


def test_tags_of_trees_are_read_with_their_words() -> None:
    first = small_models.trees()[0]
    assert gold()[0] == (first.tokens(), [leaf.label for leaf in first.leaves()])
    assert len(gold()) == len(small_models.trees())


def test_votes_are_magnitudes_of_posteriors_by_tag() -> None:
    """Numbers of any sign make some posteriors negative."""
    (member,) = model(False).members
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(member.c_inf))
    one = SequenceTagger(
        replace(model(False), members=(replace(member, c_inf=member.c_inf * signs),))
    )
    words = ("Anna", "zzzing", "zzzed", "the", "zzzs", ".")
    emissions = one._emit(words, None)
    found = forward_backward(one._chains, emissions)
    assert found.candidates.min() < -0.1
    tags = one.tag(Sentence(words))
    for i in range(len(words)):
        votes: dict[str, float] = {}
        for c in range(emissions.start[i], emissions.start[i + 1]):
            name = one.model.grammar.symbols[emissions.symbol[c]].rpartition("|")[2]
            votes[name] = votes.get(name, 0.0) + abs(found.candidates[c])
        best = max(votes, key=lambda tag: votes[tag])
        assert tags.tags[i] == best
        assert tags.probabilities[i] == pytest.approx(votes[best] / sum(votes.values()))
    assert (tags.log_probability, tags.sign) == (found.log, found.sign)


@pytest.mark.parametrize("neighbours", [True, False])
def test_gold_tags_of_training_sentences_are_found(neighbours: bool) -> None:
    scores = evaluate(tagger(neighbours), gold())
    assert scores.accuracy > 97
    assert scores.sentences == len(gold())
    assert scores.words == sum(len(words) for words, _ in gold())
    assert scores.unknown_words == 0
    assert scores.unknown_accuracy is None
    assert scores.exact_match <= scores.accuracy


def test_tags_that_the_caller_knows_stay() -> None:
    words = ("The", "saw", "sang", ".")
    free = tagger().tag(Sentence(words))
    fixed = tagger().tag(Sentence(words, tags=("DT", "NN", None, None)))
    assert fixed.tags[:2] == ("DT", "NN")
    assert fixed.probabilities[0] == pytest.approx(1.0)
    assert len(free.tags) == len(fixed.tags) == 4


def test_words_are_tagged_one_by_one_where_no_sequence_was_seen() -> None:
    words, tags = ("the", "the"), ("DT", "DT")
    found = tagger(False).tag(Sentence(words, tags=tags))
    assert (found.log_probability, found.sign) == (None, 0)
    assert found.tags == tags


def test_a_sentence_without_words_is_refused() -> None:
    with pytest.raises(InputError, match="expected at least one word"):
        tagger().tag(Sentence(()))


def test_evaluation_counts_unknown_words_and_signs() -> None:
    sentences: list[Tagged] = [(["the", "Zork", "sang", "."], ["DT", "NNP", "VBD", "."])]
    scores = evaluate(tagger(), sentences)
    assert scores.unknown_words == 1
    assert scores.unknown_accuracy in (0.0, 100.0)
    members = (replace(model().members[0], c_one=-model().members[0].c_one),)
    flipped = evaluate(SequenceTagger(replace(model(), members=members)), gold())
    plain = evaluate(tagger(), gold())
    assert flipped.accuracy == plain.accuracy
    assert flipped.negative == pytest.approx(100 - plain.negative - plain.alone)


def test_a_published_model_answers_as_before(tmp_path: Path) -> None:
    reference, facts, scores = train_and_publish(
        SMALL,
        Config(estimator_of("spectral", states=4)),
        store=tmp_path,
        name="tags",
        dev={"dev": gold()},
    )
    stored = SequenceTagger.load(str(reference), tmp_path)
    assert stored.reference is not None
    for words, _ in gold():
        one, two = (each.tag(Sentence(words)) for each in (stored, tagger()))
        assert one.tags == two.tags
        # the store keeps half precision: three digits
        assert one.probabilities == pytest.approx(two.probabilities, abs=5e-3)
    assert evaluate(stored, gold()).accuracy == scores["dev"].accuracy
    assert facts["words"] == scores["dev"].words
    card = load("tags", tmp_path).card
    assert f"{scores['dev'].accuracy:.2f} % of tags right" in card


def test_models_of_other_kinds_are_refused(tmp_path: Path) -> None:
    bundle = to_bundle(model(), facts={}, card="")
    assert from_bundle(bundle).grammar.symbols == model().grammar.symbols
    with pytest.raises(StoreError, match="found 'constituency'"):
        from_bundle(replace(bundle, grammar={**bundle.grammar, "kind": "constituency"}))
    reference, _, _ = train_and_publish(
        SMALL, Config(estimator_of("counts")), store=tmp_path, name="tags", dev={}
    )
    with pytest.raises(StoreError, match="found 'tags'"):
        Parser.load(str(reference), tmp_path)


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(TrainingError, match="expected tagged sentences"):
        learn([], Config(estimator_of("counts")))
    with pytest.raises(InputError, match="expected tagged sentences"):
        evaluate(tagger(), [])


def test_the_number_of_workers_changes_no_byte() -> None:
    one, two = (
        learn(gold(), Config(estimator_of("pivot+em", states=3), workers=workers))[0].members[0]
        for workers in (1, 2)
    )
    for name in ("parent", "left", "right", "c_inf", "c_one"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
