"""How unusual a sentence is among those that were held out from training."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lpcfg.base.errors import GrammarError
from lpcfg.kinds.constituency.model import Model, from_bundle, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.surprisal import GROUP, STEPS, SurprisalQuantiles
from lpcfg.kinds.sentences import sentence_from_tokens, sentence_from_tree
from lpcfg.training.data.held_out import HeldOut
from lpcfg.training.stages import Stages
from tests import small_models


def test_percentiles_count_the_sentences_of_a_length_that_surprise_less() -> None:
    words = [3] * 100 + [9] * 100
    surprisals = np.concatenate([np.arange(100), 1000 + np.arange(100)]).astype(float)
    fitted = SurprisalQuantiles.fitted(words, surprisals)
    assert fitted is not None
    assert fitted.longest == (3, 9)
    for length, base in ((1, 0), (3, 0), (4, 1000), (9, 1000), (50, 1000)):
        # Linear between 41 quantiles of 100 equal steps: exact but for the ends' half step.
        assert fitted.percentile(length, base + 49.5) == pytest.approx(50)
        assert fitted.percentile(length, base - 1) == 0
        assert fitted.percentile(length, base + 99) == 100
        assert fitted.percentile(length, base + 24.75) == pytest.approx(25)


def test_more_surprise_is_never_a_lower_percentile() -> None:
    rng = np.random.default_rng(3)
    fitted = SurprisalQuantiles.fitted([5] * 300, np.round(rng.normal(size=300), 1))
    assert fitted is not None
    found = [fitted.percentile(5, s) for s in np.linspace(-4, 4, 400)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, 100)


def test_every_group_has_enough_sentences_and_what_is_left_joins_the_last() -> None:
    words = list(range(1, GROUP * 2)) + [200] * 3
    fitted = SurprisalQuantiles.fitted(words, np.zeros(len(words)))
    assert fitted is not None
    assert fitted.longest == (GROUP, 200)
    assert SurprisalQuantiles.fitted(words[: GROUP - 1], np.zeros(GROUP - 1)) is None


@pytest.mark.parametrize(
    ("longest", "quantiles"),
    [((), ()), ((3, 3), ((0.0, 1.0),) * 2), ((3,), ((1.0, 0.0),)), ((3,), ((1.0,),))],
)
def test_what_are_no_quantiles_is_refused(
    longest: tuple[int, ...], quantiles: tuple[tuple[float, ...], ...]
) -> None:
    with pytest.raises(GrammarError, match="expected quantiles of surprisal"):
        SurprisalQuantiles(longest, quantiles)


def usual_of(model: Model) -> SurprisalQuantiles | None:
    return HeldOut(small_models.trees(), model, 1).calibration(model, Stages()).surprisal


def test_surprise_is_counted_for_every_sentence_with_a_probability() -> None:
    model = small_models.counts()
    parser = Parser(model)
    sentences = [sentence_from_tree(tree) for tree in small_models.trees()]
    surprisals = [
        (len(sentence.tokens), parser.surprisal(sentence, found.log_probability))
        for sentence, found in zip(sentences, parser.parse(sentences), strict=True)
        if found.log_probability is not None
    ]
    expected = SurprisalQuantiles.fitted([n for n, _ in surprisals], [one for _, one in surprisals])
    assert usual_of(model) == expected


def test_a_stored_model_answers_the_same_percentiles() -> None:
    model = small_models.counts()
    fitted = usual_of(model)
    assert fitted is not None
    assert len(fitted.quantiles[0]) == STEPS + 1
    stored = from_bundle(to_bundle(replace(model, surprisal=fitted), facts={}, card=""))
    assert stored.surprisal == fitted
    assert json.loads(json.dumps(fitted.as_json())) == fitted.as_json()


def test_salad_is_more_unusual_than_the_sentences_that_were_learned_from() -> None:
    model = small_models.counts()
    fitted = usual_of(model)
    parser = Parser(replace(model, surprisal=fitted))
    good = [sentence_from_tree(tree) for tree in small_models.trees()[:20]]
    salad = [sentence_from_tokens(sentence.tokens[::-1]) for sentence in good]
    usually = [analysis.unusual or 0 for analysis in parser.parse(good)]
    backwards = [one.unusual for one in parser.parse(salad) if one.unusual is not None]
    assert np.median(backwards) > np.median(usually) + 20


def test_a_model_without_quantiles_does_not_say() -> None:
    (analysis,) = small_models.parser().parse([sentence_from_tokens(["dogs", "bark"])])
    assert analysis.unusual is None
