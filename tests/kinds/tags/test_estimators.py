"""Estimators learn refinement HMMs from right-branching trees, without a change to them."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest

from lpcfg.engine.exact.inside_outside import tree_probability
from lpcfg.grammar.lexicon import Emitter
from lpcfg.kinds.tags.chains import Tagged, chain
from lpcfg.kinds.tags.kernel import chains_of, forward_backward
from lpcfg.kinds.tags.predict import SequenceTagger
from lpcfg.kinds.tags.train import Config, estimator_of, learn
from tests.kinds.tags.hmm import WORDS, random_hmm, tables_of
from tests.observable import observable_form
from tests.strategies_grammar import literal_emissions
from tests.training.test_theory import exact_moments


def sampled(seed: int, count: int, states: Sequence[int] = (2, 2)) -> list[Tagged]:
    rng = np.random.default_rng(seed)
    hmm = random_hmm(rng, states, concentration=0.3)
    return [hmm.draw(rng) for _ in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_exact_moments_give_back_every_probability(seed: int) -> None:
    """Theorem 6, to its tolerance of 1e-8; the C that come back do not hold h = h' fast."""
    rng = np.random.default_rng(seed)
    hmm = random_hmm(rng, [2, 3], concentration=0.5)
    lpcfg = tables_of(hmm)
    learned = observable_form(lpcfg.grammar, exact_moments(lpcfg, rng), lpcfg.states)
    for words in product(WORDS[:3], repeat=3):
        emissions = literal_emissions(lpcfg.grammar, words)
        for tags, p in hmm.taggings(words):
            found = tree_probability(learned, chain(words, tags), emissions).probability.value
            assert found == pytest.approx(p, rel=1e-8)
        before, after = (forward_backward(chains_of(one), emissions) for one in (lpcfg, learned))
        assert after.log == pytest.approx(before.log, abs=1e-8)
        assert after.candidates == pytest.approx(before.candidates, abs=1e-8)


def counted(sentences: Sequence[Tagged], words: Sequence[str]) -> float:
    """Compute p(words) under the bigram HMM of relative frequencies; the end is part of a tag."""
    ends = [[(tag, i == len(tags) - 1) for i, tag in enumerate(tags)] for _, tags in sentences]
    start = Counter(one[0] for one in ends)
    follow = Counter(pair for one in ends for pair in pairwise(one))
    visits = Counter(state for one in ends for state in one)
    emit = Counter(
        (state, word)
        for one, (spoken, _) in zip(ends, sentences, strict=True)
        for state, word in zip(one, spoken, strict=True)
    )
    total = 0.0
    n = len(words)
    for states in product(visits, repeat=n):
        if any(last != (i == n - 1) for i, (_, last) in enumerate(states)):
            continue
        p = start[states[0]] / len(sentences)
        for one, two in pairwise(states):
            p *= follow[one, two] / visits[one]
        for state, word in zip(states, words, strict=True):
            p *= emit[state, word] / visits[state]
        total += p
    return total


def test_one_state_is_the_counted_bigram_hmm() -> None:
    sentences = sampled(0, 200)
    config = Config(estimator_of("counts"), neighbours=False, rare_threshold=0)
    model, _ = learn(sentences, config)
    chains, emit = chains_of(model.coarse), Emitter(model.grammar, model.lexicon)
    assert not model.members
    for n in (1, 2, 3):
        for words in product(WORDS, repeat=n):
            found = forward_backward(chains, emit(words))
            expected = counted(sentences, words)
            assert found.sign * np.exp(found.log) == pytest.approx(expected, rel=1e-12)


def test_em_on_tagged_sentences_never_gets_less_likely() -> None:
    """Without smoothing, which is no part of EM, from the first M-step on, which makes sums one.

    Sums are of single precision, 1e-6 of themselves, and told with two digits.
    """
    config = Config(
        estimator_of("em", states=3, steps=25, smoothing=False), neighbours=False, rare_threshold=0
    )
    _, facts = learn(sampled(1, 300), config)
    likelihoods = np.array(facts["reported"]["log_likelihood"])[1:]
    assert len(likelihoods) == 24
    assert (np.diff(likelihoods) >= -0.01 - 1e-6 * abs(likelihoods[0])).all()
    assert likelihoods[-1] > likelihoods[0] + 100


def likelihood(tagger: SequenceTagger, sentences: Sequence[Tagged]) -> float:
    """Compute the mean of log p(words, tags) by the exact engine."""
    tables = tagger.model.members[0] if tagger.model.members else tagger.model.coarse
    emit = Emitter(tagger.model.grammar, tagger.model.lexicon)
    found = [
        tree_probability(tables, chain(words, tags), emit(words)).probability
        for words, tags in sentences
    ]
    return float(np.mean([one.log if one.sign > 0 else -50.0 for one in found]))


@pytest.mark.parametrize("name", ["spectral", "em", "pivot"])
def test_states_tell_more_than_tags_alone(name: str) -> None:
    """Held-out tagged sentences of an HMM with four states are likelier than under bigrams."""
    both = sampled(3, 2300, (4, 4))
    learned, held_out = both[:2000], both[2000:]
    settings = {"states": 4} | ({} if name.endswith("em") else {"cut": 0.02})
    states = Config(estimator_of(name, **settings), neighbours=False, rare_threshold=0)
    plain = Config(estimator_of("counts"), neighbours=False, rare_threshold=0)
    with_states, without = (
        likelihood(SequenceTagger(learn(learned, one)[0]), held_out) for one in (states, plain)
    )
    assert with_states > without
