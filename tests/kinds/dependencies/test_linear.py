"""The base parser and its reranker."""

import numpy as np
import pytest
from benchmarks.dependency_trees import linear, reranking, second_order
from benchmarks.dependency_trees.bootstrap import paired_bootstrap
from benchmarks.dependency_trees.reranking import Candidates, triples

from lpcfg.kinds.dependencies.arcs import Arcs
from tests.kinds.dependencies import trees

WORDS = {"D": ("the", "a"), "N": ("dog", "cat", "bone"), "V": ("saw", "ate"), "P": ("of", "with")}


def sentences(count: int, seed: int) -> list[Arcs]:
    """Draw sentences of a small language, D N (P D N)? V D N, in which prepositions modify the noun
    before.
    """
    random = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        tags, heads = ["D", "N"], [2, 0]
        if random.random() < 0.5:
            tags += ["P", "D", "N"]
            heads += [2, 5, 3]
        verb = len(tags) + 1
        heads[1] = verb
        tags += ["V", "D", "N"]
        heads += [0, verb + 2, verb]
        words = tuple(str(random.choice(WORDS[tag])) for tag in tags)
        result.append(trees.arcs_from(tuple(heads), words, tuple(f"{t}|{t}" for t in tags)))
    return result


def test_a_small_language_is_learned_whole() -> None:
    parser = linear.learn(sentences(200, 0))
    for arcs in sentences(30, 1):
        heads, logs = parser.k_best(arcs, 3)
        assert tuple(heads[0]) == arcs.heads
        assert np.exp(logs).sum() <= 1 + 1e-9
        assert logs[0] > np.log(0.9)


def test_learning_is_the_same_for_a_seed() -> None:
    one, other = (linear.learn(sentences(50, 0), seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.weights, other.weights)


def decided_by_siblings(count: int, seed: int) -> list[Arcs]:
    """Draw V Y Y Y A B X X X N, or the same with B A: the last word hangs from the verb beside an
    A, and from the last X beside a B. Arcs, with what is between and beside them, do not say which.
    """
    random = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        first, second, last = ("A", "B", 1) if random.random() < 0.5 else ("B", "A", 9)
        tags = ["V", "Y", "Y", "Y", first, second, "X", "X", "X", "N"]
        heads = (0, 1, 2, 3, 1, 5, 6, 7, 8, last)
        words = tuple("w" for _ in tags)
        result.append(trees.arcs_from(heads, words, tuple(f"{tag}|{tag}" for tag in tags)))
    return result


def test_only_the_second_order_learns_what_siblings_decide() -> None:
    gold, unseen = decided_by_siblings(300, 0), decided_by_siblings(60, 1)

    def right(parser: linear.LinearParser | second_order.SiblingParser) -> int:
        return sum(tuple(parser.k_best(one, 1)[0][0]) == one.heads for one in unseen)

    assert right(linear.learn(gold)) < 45
    parser = second_order.learn(gold)
    assert right(parser) == 60
    _, logs = parser.k_best(unseen[0], 50)
    assert np.exp(logs).sum() <= 1 + 1e-9
    assert logs[0] > np.log(0.9)


def test_siblings_are_the_nearest_modifiers_on_the_same_side() -> None:
    heads = np.array([3, 3, 0, 5, 3, 3])
    found = [second_order.sibling_of(heads, m) for m in (1, 2, 4, 5, 6)]
    assert found == [2, 3, 5, 3, 5]


def test_triples_of_tags_are_those_of_the_paper() -> None:
    found = triples((2, 0, 2, 3), ("D", "N", "P", "N"))
    assert sorted(found) == sorted(["D N P", "L- D N ROOT", "R- P N ROOT", "RR N P N"])


def test_a_reranker_learns_what_the_base_parser_cannot_see() -> None:
    """A verb has at most one noun to its right: no arc alone says so, a triple of tags does."""
    random = np.random.default_rng(0)
    gold = sentences(200, 2)
    examples = []
    for arcs in gold:
        wrong = list(arcs.heads)
        wrong[0] = arcs.root  # the determiner of the first noun hangs from the verb
        both = np.array([wrong, arcs.heads])
        base = np.array([[0.0], [0.1 * random.standard_normal()]])  # it knows nothing
        examples.append(Candidates(arcs, both, base))
    model = reranking.learn(examples[:150])
    assert all(model.best(one) == 1 for one in examples[150:])
    alone = reranking.learn(examples[:150], use_triples=False)
    assert sum(alone.best(one) == 1 for one in examples[150:]) < 40


def test_the_base_score_alone_ranks_as_the_base_parser_does() -> None:
    parser = linear.learn(sentences(100, 0))
    examples = []
    for arcs in sentences(20, 3):
        heads, logs = parser.k_best(arcs, 5)
        examples.append(Candidates(arcs, heads, logs[:, None]))
    model = reranking.learn(examples, use_triples=False)
    assert [model.best(one) for one in examples] == [0] * 20


def test_scores_that_are_not_finite_are_far_below() -> None:
    numbers = np.array([[0.0], [-1.0], [-np.inf]])
    scaled = reranking.scaled(numbers, np.ones(1))
    assert scaled.ravel().tolist() == [0.0, -1.0, -reranking.FAR]


def test_the_bootstrap_finds_gains_and_doubts_chance() -> None:
    words = np.full(200, 10)
    base = np.full(200, 5)
    better = base + (np.arange(200) % 2)
    gain, p = paired_bootstrap(base, better, words, draws=500)
    assert gain == pytest.approx(5.0)
    assert p < 0.01
    noise = base + np.where(np.arange(200) % 2, 1, -1)
    assert 0.2 < paired_bootstrap(base, noise, words, draws=500)[1] < 0.8
