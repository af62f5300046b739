"""The expansion into an L-PCFG: one tree each way, topology and words with one probability."""

import itertools

import numpy as np
import pytest
from benchmarks.dependency_trees import expanded

from lpcfg.base.errors import InputError, TrainingError
from lpcfg.engine.exact.inside_outside import inside, tree_probability
from lpcfg.grammar.known import enumerate_trees
from lpcfg.grammar.lexicon import Emitter
from lpcfg.kinds.dependencies import eisner, expansion
from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.training.estimators.em import EmConfig
from lpcfg.training.estimators.registry import ESTIMATORS
from lpcfg.training.estimators.spectral import SpectralConfig
from lpcfg.trees.brackets import write
from tests.kinds.dependencies import trees
from tests.kinds.dependencies.arc_marginals import arc_marginals

TAGS = ("D", "N", "V")
WORDS = {"D": ("the", "a"), "N": ("dog", "cat", "bone"), "V": ("saw", "ate")}


def drawn(count: int, seed: int, longest: int = 5) -> list[Arcs]:
    """Draw projective trees with random tags and words."""
    random = np.random.default_rng(seed)
    every = {n: trees.projective_trees(n) for n in range(1, longest + 1)}
    result = []
    for _ in range(count):
        n = int(random.integers(1, longest + 1))
        tags = tuple(TAGS[k] for k in random.integers(0, 3, n))
        words = tuple(str(random.choice(WORDS[tag])) for tag in tags)
        heads = every[n][int(random.integers(len(every[n])))]
        result.append(trees.arcs_from(heads, words, tags))
    return result


def test_modifiers_join_from_the_head_outward_the_right_ones_first() -> None:
    arcs = trees.arcs_from((2, 0, 2, 2), ("the", "dog", "ate", "here"), ("D", "N", "V", "R"))
    assert write(expansion.expand(arcs)) == ("(N/L (D the) (N/R (N/R (N dog) (V ate)) (R here)))")


@pytest.mark.parametrize("n", range(1, 6))
def test_every_projective_tree_has_an_expansion_of_its_own(n: int) -> None:
    tags = tuple(f"_|{TAGS[k % 3]}" for k in range(n))
    seen = set()
    for heads in trees.projective_trees(n):
        arcs = trees.arcs_from(heads, tags=tags)
        tree = expansion.expand(arcs)
        assert expansion.collapse(tree) == arcs
        seen.add(write(tree))
    assert len(seen) == len(trees.projective_trees(n))


def test_what_cannot_be_expanded_or_collapsed_is_refused() -> None:
    crossing = next(h for h in trees.all_trees(4) if not trees.is_projective(h))
    with pytest.raises(InputError, match="crosses others"):
        expansion.expand(trees.arcs_from(crossing, tags=("N",) * 4))
    with pytest.raises(InputError, match="without tags"):
        expansion.expand(trees.arcs_from((0,)))
    tree = expansion.expand(drawn(1, 0)[0])
    renamed = type(tree)("S", (tree, tree))
    with pytest.raises(InputError, match="ends in /R or /L, got 2 under 'S'"):
        expansion.collapse(renamed)
    with pytest.raises(TrainingError, match="got none"):
        expanded.learn([])


SETTINGS = {
    "em": EmConfig(states=2, steps=3),
    "spectral": SpectralConfig(states=3),
}


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator_learns_from_expansions(name: str) -> None:
    sample = drawn(300, seed=3)
    learned = expanded.learn(sample, name, SETTINGS.get(name), rare_threshold=0)
    tree = expansion.expand(sample[0])
    emissions = Emitter(learned.grammar, learned.lexicon)(sample[0].words, list(sample[0].tags))
    found = tree_probability(learned.tables, tree, emissions)
    assert not found.missing
    assert found.probability.sign == 1
    assert found.probability.log < 0


@pytest.fixture(scope="module")
def counted() -> expanded.Expanded:
    return expanded.learn(drawn(400, seed=1), "counts", rare_threshold=0)


def test_trees_of_all_topologies_share_one_probability(counted: expanded.Expanded) -> None:
    """p(tree) generates topology: over trees of any words and shape it sums to 1 or less."""
    emitter = Emitter(counted.grammar, counted.lexicon)
    total = 0.0
    for tree, _ in enumerate_trees(counted.tables, 3):
        emissions = emitter(tree.tokens(), [leaf.label for leaf in tree.leaves()])
        total += tree_probability(counted.tables, tree, emissions).probability.value
    assert 0.3 < total < 1 + 1e-9


@pytest.mark.parametrize("name", ["counts", "spectral"])
@pytest.mark.parametrize("words", ["dog", "the dog ate", "the cat saw a", "a the dog saw bone"])
def test_marginals_of_arcs_are_shares_of_all_trees(name: str, words: str) -> None:
    learned = expanded.learn(drawn(300, seed=2), name, SETTINGS.get(name), rare_threshold=0)
    tokens = tuple(words.split())
    tags = tuple(tag for word in tokens for tag in TAGS if word in WORDS[tag])
    n = len(tokens)
    emissions = Emitter(learned.grammar, learned.lexicon)(tokens, list(tags))
    expected, total = np.zeros((n + 1, n + 1)), 0.0
    for heads in trees.projective_trees(n):
        tree = expansion.expand(trees.arcs_from(heads, tokens, tags))
        p = tree_probability(learned.tables, tree, emissions).probability.value
        total += p
        for m, head in enumerate(heads, start=1):
            expected[head, m] += p
    found = arc_marginals(learned, tokens, tags)
    np.testing.assert_allclose(found, expected / total, atol=1e-9)
    sentence = inside(learned.tables, emissions).probability
    assert sentence.value == pytest.approx(total, rel=1e-9)


def test_the_minimum_risk_tree_has_the_most_expected_arcs(counted: expanded.Expanded) -> None:
    tokens, tags = ("the", "dog", "saw", "a"), ("D", "N", "V", "D")
    marginals = arc_marginals(counted, tokens, tags)

    def expected(heads: trees.Heads) -> float:
        return sum(marginals[head, m] for m, head in enumerate(heads, start=1))

    best = tuple(eisner.best_tree(marginals).tolist())
    assert expected(best) == pytest.approx(max(map(expected, trees.projective_trees(4))))


def test_counts_recover_a_known_grammar_of_modifiers() -> None:
    """A head N has a D to its left with probability .75, and nothing else; p(tree) says so."""
    with_d = trees.arcs_from((2, 0), ("the", "dog"), ("D", "N"))
    without = trees.arcs_from((0,), ("dog",), ("N",))
    learned = expanded.learn([with_d] * 3 + [without], "counts", rare_threshold=0)
    shares = {write(tree): p for tree, p in enumerate_trees(learned.tables, 3)}
    assert shares == {
        "(N dog)": pytest.approx(0.25),
        "(N/L (D the) (N dog))": pytest.approx(0.75),
    }
    assert list(itertools.islice(shares, 1)) == ["(N dog)"]
