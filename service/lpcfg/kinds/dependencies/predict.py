"""Parse sentences into dependency trees, with a probability for every arc.

The tree served has the largest sum of arcs' posteriors (minimum risk): on average it has the most
right heads. Relations and tags are the likeliest of every word, given the tree.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError
from lpcfg.grammar.tables import Doubles, Longs, Singles
from lpcfg.kinds.dependencies import conllu, eisner
from lpcfg.kinds.dependencies.arcs import ROOT_RELATION, Arcs
from lpcfg.kinds.dependencies.model import DependencyModel, from_bundle
from lpcfg.kinds.dependencies.network import (
    Batch,
    Parameters,
    arc_parts,
    arc_scores,
    batch_of,
    distance_rows,
    encode,
    log_shares,
    relation_hidden,
)
from lpcfg.kinds.sentences import ENGLISH, Given, Sentence
from lpcfg.store.versions import Reference, Stored, load

TOGETHER = 16
"""Sentences that go through the network's layers at once; more are no faster."""


class Attached(NamedTuple):
    """A token with its head, and how sure the model is of what it says.

    `head` is the number of the head's token, counted from 1; 0 says that the token is the root.
    `probability` is of head and relation together. `start` and `end` are None where the sentence
    came as tokens.
    """

    text: str
    start: int | None
    end: int | None
    tag: str
    xpos: str | None
    tag_probability: float
    head: int
    relation: str
    head_probability: float
    probability: float


@dataclass(frozen=True)
class ParsedArcs:
    """A tree and its probabilities under the model.

    Element m − 1 belongs to word m. `head_probabilities` is of its head, `probabilities` of its
    head and relation together, `tag_probabilities` of its tag. `log_probability` is log p(tree |
    sentence). A sentence without words has failed. Printed, it is CoNLL-U.
    """

    sentence: Sentence
    arcs: Arcs
    head_probabilities: tuple[float, ...]
    probabilities: tuple[float, ...]
    tag_probabilities: tuple[float, ...]
    log_probability: float

    @classmethod
    def failed(cls, sentence: Sentence) -> "ParsedArcs":
        """Make the answer to a sentence without words."""
        return cls(sentence, Arcs((), (), ()), (), (), (), -math.inf)

    @property
    def status(self) -> str:
        """`parsed` or `failed`."""
        return "parsed" if self.arcs.words else "failed"

    @property
    def reason(self) -> str | None:
        """Why there is no tree, where there is none."""
        return None if self.arcs.words else "the sentence has no words"

    @property
    def tokens(self) -> tuple[Attached, ...]:
        """Return the tokens in order, each with its head, relation, tag and probabilities."""
        arcs = self.arcs
        found = []
        for m, word in enumerate(arcs.words):
            upos, _, xpos = arcs.tags[m].partition("|")
            start, end = arcs.offsets[m] if arcs.offsets else (None, None)
            found.append(
                Attached(
                    *(word, start, end, upos, xpos or None, self.tag_probabilities[m]),
                    *(arcs.heads[m], arcs.labels[m]),
                    *(self.head_probabilities[m], self.probabilities[m]),
                )
            )
        return tuple(found)

    def conllu(self, comments: Sequence[str] = ()) -> conllu.Sentence:
        """Return the tree as a sentence of CoNLL-U; MISC says how sure head and relation are."""
        plain = conllu.sentence_of(self.arcs, self.sentence.text, comments)
        rows = []
        for row, probability in zip(plain.rows, self.probabilities, strict=True):
            misc = [] if row[conllu.MISC] == "_" else [row[conllu.MISC]]
            misc = sorted([*misc, f"Probability={probability:.4f}"])
            rows.append((*row[: conllu.MISC], "|".join(misc)))
        return conllu.Sentence(plain.comments, tuple(rows))

    def __str__(self) -> str:
        return conllu.write([self.conllu()]).rstrip("\n")


class DependencyParser:
    """A stored dependency model that parses. Safe to use from several threads.

    >>> parser = lpcfg.load_dependencies("en-dep")
    >>> (found,) = parser("The dog barked.")
    >>> [(token.text, token.head, token.relation) for token in found.tokens]
    [('The', 2, 'det'), ('dog', 3, 'nsubj'), ('barked', 0, 'root'), ('.', 3, 'punct')]
    >>> all(0 < token.probability <= 1 for token in found.tokens)
    True
    """

    def __init__(self, model: DependencyModel, reference: Reference | None = None) -> None:
        self.model = model
        self.reference = reference

    @classmethod
    def load(cls, reference: str, store: str | Path) -> "DependencyParser":
        """Return the parser of a stored model: NAME, NAME@VERSION, or a path."""
        return cls.of(load(reference, store))

    @classmethod
    def of(cls, stored: Stored) -> "DependencyParser":
        """Return the parser of a stored model."""
        return cls(from_bundle(stored), stored.reference)

    def __call__(self, given: Given) -> list[ParsedArcs]:
        """Parse text of any number of sentences, or sentences one by one."""
        return self.parse(given)

    def parse(self, given: Given, *, stop: Stop | None = None) -> list[ParsedArcs]:
        """Parse sentences of at least one word each, in order.

        Text is cut into sentences and tokens; a list has a string, a list of tokens or an
        `lpcfg.Sentence` for each sentence. Tags and constraints are refused: the model uses none.
        """
        sentences = ENGLISH.sentences_of(given)
        for number, sentence in enumerate(sentences):
            check_plain(sentence, f"/sentences/{number}")
            if not sentence.tokens:
                raise InputError(
                    f"expected at least one word, got none in sentence {number + 1}: "
                    "leave empty sentences out"
                )
        return list(self.predict(sentences, stop))

    def predict(
        self, sentences: Sequence[Sentence], stop: Stop | None = None
    ) -> Iterator[ParsedArcs]:
        """Parse sentences, in order; one without words has failed."""
        computed = self._computed([one.tokens for one in sentences if one.tokens], stop)
        for sentence in sentences:
            if sentence.tokens:
                yield self._read_out(sentence, next(computed))
            else:
                yield ParsedArcs.failed(sentence)

    def arc_scores(self, sentences: Sequence[Sequence[str]]) -> list[Doubles]:
        """Compute the scores of all arcs of every sentence: log p(tree | sentence) is their sum
        minus log Z.
        """
        return [found.score for found in self._computed(sentences, None)]

    def log_probability(self, words: Sequence[str], heads: Sequence[int]) -> float:
        """Compute log p(tree | sentence); −inf of a tree that is not projective."""
        arcs = Arcs(tuple(words), tuple(heads), ("",) * len(words))
        if not arcs.is_projective:
            return -np.inf
        [score] = self.arc_scores([words])
        return _log_share(score, np.array(heads, np.int64), eisner.inside(score)[2])

    def tree_probability(self, arcs: Arcs) -> dict[str, Any]:
        """Compute log p(tree | sentence), and log |p(words | topology)| with its sign if the model
        has Algorithm 1.

        None is the log of zero; without Algorithm 1, sign and log are None.
        """
        conditional = self.log_probability(arcs.words, arcs.heads)
        zero = not np.isfinite(conditional)
        by_words = None
        if self.model.spectral is not None:
            by_words = self.model.spectral.probability(arcs)
        return {
            "log_probability": by_words.log if by_words is not None and by_words.sign else None,
            "sign": None if by_words is None else by_words.sign,
            "conditional_log_probability": None if zero else conditional,
            "reason": "the tree is not projective" if zero else None,
        }

    def _computed(
        self, sentences: Sequence[Sequence[str]], stop: Stop | None
    ) -> Iterator["_Computed"]:
        for start in range(0, len(sentences), TOGETHER):
            some = sentences[start : start + TOGETHER]
            batch = batch_of([self.model.inputs.rows(words) for words in some])
            yield from self._of_batch(batch, stop)

    def _of_batch(self, batch: Batch, stop: Stop | None) -> Iterator["_Computed"]:
        vectors = self.model.inputs.dense[batch.rows[:, -1]]
        computed = [(p, *encode(p, batch, vectors)) for p in self.model.members]
        parts = [arc_parts(p, states) for p, _, states in computed]
        tags = np.mean(
            [log_shares(c @ p["tag.out"] + p["tag.bias"]) for p, c, _ in computed], axis=0
        )
        for first, length in zip(batch.first.tolist(), batch.length.tolist(), strict=True):
            if stop is not None:
                stop.check()
            score = np.mean([arc_scores(one, first, length) for one in parts], axis=0)
            words = slice(first, first + length)
            of_members = [(p, states[first - 1 : words.stop]) for p, _, states in computed]
            yield _Computed(score * self.model.inverse_temperature, tags[words], of_members)

    def _read_out(self, sentence: Sentence, found: "_Computed") -> ParsedArcs:
        words = tuple(sentence.tokens)
        posterior, log_z = eisner.marginals(found.score)
        heads = eisner.best_tree(posterior)
        m = np.arange(1, len(words) + 1)
        of_head = np.minimum(posterior[heads, m], 1.0)
        labels, of_label = self._relations(found, heads)
        of_tag = np.exp(found.tags - np.logaddexp.reduce(found.tags, axis=1)[:, None])
        tags = of_tag.argmax(axis=1)
        arcs = Arcs(
            words,
            tuple(heads.tolist()),
            labels,
            tuple(self.model.tags[k] for k in tags),
            tuple(sentence.offsets or ()),
        )
        return ParsedArcs(
            sentence,
            arcs,
            tuple(of_head.tolist()),
            tuple((of_head * of_label).tolist()),
            tuple(of_tag.max(axis=1).tolist()),
            _log_share(found.score, heads, log_z),
        )

    def _relations(self, found: "_Computed", heads: Longs) -> tuple[tuple[str, ...], Doubles]:
        """Find the likeliest relation of every word to its head, and its probability given the
        head.

        The root's word has the relation `root` and no other word has.
        """
        distances = distance_rows(heads, np.arange(1, len(heads) + 1))
        score = np.mean(
            [
                log_shares(
                    relation_hidden(p, states[heads], states[1:], distances) @ p["relation.out"]
                    + p["relation.bias"]
                )
                for p, states in found.states
            ],
            axis=0,
        )
        names = self.model.relations
        if ROOT_RELATION in names:
            is_root = np.array([name == ROOT_RELATION for name in names])
            score = np.where(is_root[None, :] == (heads == 0)[:, None], score, -1e9)
        score = np.exp(score - np.logaddexp.reduce(score, axis=1)[:, None])
        best = score.argmax(axis=1)
        return tuple(names[k] for k in best), score.max(axis=1)


def _log_share(score: Doubles, heads: Longs, log_z: float) -> float:
    """Compute log p of a tree. Rounding may put that of a sure one above 0 by some 1e-14."""
    total = score[heads, np.arange(1, len(heads) + 1)].sum()
    return min(float(total - log_z), 0.0)


def check_plain(sentence: Sentence, pointer: str = "") -> None:
    """Raise InputError for a sentence with tags or constraints, which dependency models ignore.

    `pointer` is the place of the sentence in the request.
    """
    for name in ("tags", "constraints"):
        if getattr(sentence, name):
            raise InputError(
                f"expected tokens without {name}, got some: dependency models use none, leave "
                "them out",
                pointer=f"{pointer}/{name}",
            )


@dataclass(frozen=True, eq=False)
class _Computed:
    """The results of the network for one sentence: arcs' scores, tags' log shares, every member's
    states.
    """

    score: Doubles
    tags: Doubles
    states: list[tuple[Parameters, Singles]]
