"""k-means on points, and classes of words by it."""

import numpy as np
import pytest

from lpcfg.base.errors import InputError
from lpcfg.words.classes import word_classes
from lpcfg.words.eigenwords import Eigenwords
from lpcfg.words.k_means import k_means


def blobs(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw n points around m corners of a simplex, at most a tenth of its edge away from them."""
    truth = rng.integers(0, m, n)
    points = np.eye(m)[truth] + rng.uniform(-0.05, 0.05, (n, m))
    return points.astype(np.float32), truth


@pytest.mark.parametrize("seed", range(5))
def test_k_means_finds_clusters_that_lie_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, truth = blobs(rng, 5000, 6)
    found = k_means(points, 6, rounds=10, random=rng)
    pairs = set(zip(truth.tolist(), found.tolist(), strict=True))
    assert len(pairs) == len(set(truth.tolist())) == 6  # one to one


def test_k_means_takes_the_nearest_centre_whatever_its_length() -> None:
    rng = np.random.default_rng(6)
    truth = rng.integers(0, 3, 300)
    points = np.array([0.5, 2.0, 8.0])[truth, None] + rng.uniform(-0.1, 0.1, (300, 1))
    found = k_means(points.astype(np.float32), 3, rounds=10, random=rng)
    pairs = set(zip(truth.tolist(), found.tolist(), strict=True))
    assert len(pairs) == len(set(found.tolist())) == 3  # one to one


def test_k_means_never_makes_more_clusters_than_there_are_points() -> None:
    points = np.repeat(np.eye(2, dtype=np.float32), 10, axis=0)
    found = k_means(points, 8, rounds=3, random=np.random.default_rng(0))
    assert sorted(set(found.tolist())) == [0, 1]
    assert found.tolist() == [found[0]] * 10 + [found[-1]] * 10


def test_rounds_of_k_means_bring_points_nearer_to_their_centres() -> None:
    points = np.random.default_rng(3).random((400, 5), np.float32)

    def spread(rounds: int) -> float:
        found = k_means(points, 7, rounds=rounds, random=np.random.default_rng(1))
        return sum(
            float(((points[found == k] - points[found == k].mean(axis=0)) ** 2).sum())
            for k in range(found.max() + 1)
        )

    assert spread(20) < spread(1)


def test_words_of_a_class_are_near_and_class_0_has_the_first() -> None:
    rng = np.random.default_rng(4)
    points, truth = blobs(rng, 60, 3)
    words = Eigenwords(tuple(f"{chr(97 + k % 26)}{chr(97 + k // 26)}" for k in range(60)), points)
    found = word_classes(words, 3)
    pairs = set(zip(truth.tolist(), found.tolist(), strict=True))
    assert len(pairs) == 3  # one to one
    assert found[0] == 0
    firsts = [found.tolist().index(k) for k in range(3)]
    assert firsts == sorted(firsts)
    assert np.array_equal(found, word_classes(words, 3))


def test_more_classes_than_words_are_refused() -> None:
    words = Eigenwords(("a", "b"), np.eye(2, dtype=np.float32))
    with pytest.raises(InputError, match="from 1 to 2 classes"):
        word_classes(words, 3)
