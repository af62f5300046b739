"""Learn vectors of words for the hidden part from raw text and the treebank's words."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lpcfg.engine.rescoring.layer import WordVectors
from lpcfg.training.data.treebank import Forest
from lpcfg.training.rescoring.settings import RescoringSettings
from lpcfg.training.stages import Stage
from lpcfg.words.cca import EigenwordOptions, learn


def learn_vectors(
    forest: Forest,
    texts: Sequence[Path],
    settings: RescoringSettings,
    *,
    seed: int,
    threads: int,
    stage: Stage,
) -> WordVectors:
    """Learn eigenwords from the treebank's sentences and from files of raw text.

    Kept are the most frequent of both together.
    """
    options = EigenwordOptions(dimensions=settings.dimensions, seed=seed, threads=threads)
    learned = learn(sentences_of(forest), texts, options)  # more words, which serve as contexts
    stage.advance(len(learned.words))
    most = settings.vocabulary
    return WordVectors.of(learned.words[:most], learned.vectors[:most])


def sentences_of(forest: Forest) -> Iterator[list[str]]:
    """Return the words of every tree."""
    words = forest.word[forest.is_leaf]
    bounds = np.searchsorted(np.flatnonzero(forest.is_leaf), forest.tree_start)
    for tree in range(forest.n_trees):
        yield [forest.words[x] for x in words[bounds[tree] : bounds[tree + 1]]]
