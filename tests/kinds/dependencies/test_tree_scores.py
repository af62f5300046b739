"""Fast scores of candidates against the exact engine on expanded trees."""

import numpy as np
import pytest
from benchmarks.dependency_trees import expanded
from benchmarks.dependency_trees.tree_scores import UNSEEN, TreeScores

from lpcfg.engine.exact.inside_outside import tree_probability
from lpcfg.grammar.lexicon import Emitter
from lpcfg.kinds.dependencies import expansion
from lpcfg.training.estimators.spectral import SpectralConfig
from tests.kinds.dependencies import trees
from tests.kinds.dependencies.test_expansion import drawn


@pytest.fixture(scope="module")
def learned() -> expanded.Expanded:
    return expanded.learn(drawn(400, seed=5), "spectral", SpectralConfig(states=3))


@pytest.mark.parametrize("n", range(1, 6))
def test_scores_are_those_of_the_exact_engine(learned: expanded.Expanded, n: int) -> None:
    tags = ("D", "N", "V", "D", "N")[:n]
    words = ("the", "dog", "saw", "a", "bone")[:n]
    every = trees.projective_trees(n)
    sentence = trees.arcs_from(every[0], words, tags)
    logs, missing = TreeScores(learned).of(sentence, np.array(every))
    emissions = Emitter(learned.grammar, learned.lexicon)(words, list(tags))
    for heads, log, unseen in zip(every, logs, missing, strict=True):
        tree = expansion.expand(trees.arcs_from(heads, words, tags))
        found = tree_probability(learned.tables, tree, emissions)
        if found.missing:
            assert unseen
        else:
            assert not unseen
            assert log == pytest.approx(found.probability.log, rel=1e-9)


def test_rules_never_seen_cost_the_same_each() -> None:
    only = trees.arcs_from((2, 0), ("the", "dog"), ("D", "N"))
    scores = TreeScores(expanded.learn([only] * 5, "counts"))
    logs, missing = scores.of(only, np.array([[2, 0], [0, 1]]))
    assert missing.tolist() == [0, 2]  # D/R → D N, and D/R as the root
    assert logs[1] <= 2 * UNSEEN
    assert logs[0] == pytest.approx(0.0, abs=1e-6)
