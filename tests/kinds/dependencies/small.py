"""A small language with gold trees, relations and tags, and a model of it."""

from functools import cache

import numpy as np

from lpcfg.kinds.dependencies import conllu
from lpcfg.kinds.dependencies import train as training
from lpcfg.kinds.dependencies.arcs import Arcs
from lpcfg.kinds.dependencies.learning import NetworkSettings
from lpcfg.kinds.dependencies.model import DependencyModel

WORDS = {
    "DET|DT": ("the", "a"),
    "NOUN|NN": ("dog", "cat", "bone", "house", "river"),
    "VERB|VBD": ("saw", "ate", "found"),
    "ADP|IN": ("of", "with", "near"),
    "PUNCT|.": (".", "!"),
}
FAST = training.Config(
    NetworkSettings(32, 24, 16, 16, epochs=4, batch=8, rate=1e-2, words_left_out=0.05), members=1
)


def sentences(count: int, seed: int) -> list[Arcs]:
    """Draw sentences DT NN (IN DT NN)? VBD DT NN PUNCT: a subject, perhaps with a modifier, and an
    object.
    """
    random = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        tags, heads, labels = ["DET|DT", "NOUN|NN"], [2, 0], ["det", "nsubj"]
        if random.random() < 0.5:
            tags += ["ADP|IN", "DET|DT", "NOUN|NN"]
            heads += [5, 5, 2]
            labels += ["case", "det", "nmod"]
        verb = len(tags) + 1
        heads[1] = verb
        tags += ["VERB|VBD", "DET|DT", "NOUN|NN", "PUNCT|."]
        heads += [0, verb + 2, verb, verb]
        labels += ["root", "det", "obj", "punct"]
        words = tuple(str(random.choice(WORDS[tag])) for tag in tags)
        result.append(Arcs(words, tuple(heads), tuple(labels), tuple(tags)))
    return result


def as_conllu(trees: list[Arcs]) -> str:
    return conllu.write(conllu.sentence_of(arcs) for arcs in trees)


@cache
def model() -> DependencyModel:
    return training.train(sentences(300, 0), FAST)[0]
