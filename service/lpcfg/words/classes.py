"""Find classes of words by k-means on eigenwords."""

import numpy as np

from lpcfg.base.errors import InputError
from lpcfg.words.eigenwords import Eigenwords
from lpcfg.words.k_means import Clusters, k_means

ROUNDS = 20


def word_classes(words: Eigenwords, count: int, *, seed: int = 0) -> Clusters:
    """Return the class of every word, one of `count`; class 0 is that of the most frequent word.

    Vectors of length one that are near each other have large cosines: so are words of a class.
    """
    if not 1 <= count <= len(words.words):
        raise InputError(
            f"expected from 1 to {len(words.words)} classes, one a word at most, got {count}: "
            "ask for another number"
        )
    random = np.random.default_rng(seed)
    cluster = k_means(words.vectors, count, rounds=ROUNDS, random=random)
    order = np.argsort(np.unique(cluster, return_index=True)[1])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[cluster]
