"""Tag sentences by the posteriors of their words' tags: on average the most tags are right.

Spectral estimates may be negative. As in parsing (NAACL 3.3), a tag's vote is the magnitude of its
posterior, and its probability is its share of the votes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import InputError
from lpcfg.grammar.lexicon import Emitter
from lpcfg.grammar.tables import Doubles, Emissions
from lpcfg.kinds.constituency.model import Model
from lpcfg.kinds.sentences import Given, Segmenter, Sentence
from lpcfg.kinds.tags.kernel import Posteriors, chains_of, forward_backward
from lpcfg.kinds.tags.model import from_bundle
from lpcfg.store.versions import Reference, Stored, load
from lpcfg.text.tokenize import penn_forms


class TaggedToken(NamedTuple):
    """A word with its place in the text, its tag, and the tag's probability."""

    text: str
    start: int | None
    end: int | None
    tag: str
    probability: float


@dataclass(frozen=True)
class Tags:
    """The tags of a sentence's words, and the probability of each.

    `log_probability` and `sign` are those of p(sentence); None and 0 where no sequence of tags has
    been seen, so that every word was tagged by itself. With a tag model, p(sentence) is a score.
    A sentence without words has failed.
    """

    sentence: Sentence
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    log_probability: float | None
    sign: int | None

    @property
    def status(self) -> str:
        """`tagged` or `failed`."""
        return "tagged" if self.tags else "failed"

    @property
    def reason(self) -> str | None:
        """Why there are no tags, where there are none."""
        return None if self.tags else "the sentence has no words"

    @property
    def tokens(self) -> tuple[TaggedToken, ...]:
        """The words in order, each with its tag and the tag's probability."""
        places = self.sentence.offsets or [(None, None)] * len(self.tags)
        rows = zip(self.sentence.tokens, places, self.tags, self.probabilities, strict=True)
        return tuple(TaggedToken(text, *place, tag, p) for text, place, tag, p in rows)

    def __str__(self) -> str:
        return " ".join(f"{token.text}/{token.tag}" for token in self.tokens)


class SequenceTagger:
    """A model that tags. Safe to use from several threads."""

    def __init__(self, model: Model, reference: Reference | None = None) -> None:
        self.model = model
        self.reference = reference
        self._chains = chains_of(model.members[0] if model.members else model.coarse)
        self._emit = Emitter(model.grammar, model.lexicon, model.tagger)

    @classmethod
    def load(cls, reference: str, store: str | Path) -> "SequenceTagger":
        """Return the tagger of a stored model: NAME, NAME@VERSION, or a path."""
        return cls.of(load(reference, store))

    @classmethod
    def of(cls, stored: Stored) -> "SequenceTagger":
        """Return the tagger of a stored model."""
        return cls(from_bundle(stored), stored.reference)

    @cached_property
    def segmenter(self) -> Segmenter:
        """The segmenter of the model's language."""
        return Segmenter(self.model.lexicon.language, self.model.lexicon.multiwords)

    def __call__(self, given: Given) -> list[Tags]:
        """Tag text of any number of sentences, or sentences one by one."""
        return list(self.predict(self.segmenter.sentences_of(given)))

    def predict(self, sentences: Iterable[Sentence], stop: Stop | None = None) -> Iterator[Tags]:
        """Tag sentences, in order; one without words has failed."""
        for sentence in sentences:
            if stop is not None:
                stop.check()
            yield self.tag(sentence) if sentence.tokens else Tags(sentence, (), (), None, None)

    @property
    def tags(self) -> tuple[str, ...]:
        """Every tag that it knows."""
        return self.model.lexicon.tags

    def tag(self, sentence: Sentence) -> Tags:
        """Tag the words of a sentence. Tags that it has already stay."""
        if not sentence.tokens:
            raise InputError("expected at least one word, got none: leave empty sentences out")
        given = sentence.tags
        forms = sentence.forms or penn_forms(
            sentence.tokens, None if given is None else [tag or "" for tag in given]
        )
        shares, found = self.shares(forms, given)
        best = shares.argmax(axis=1)
        return Tags(
            sentence,
            tuple(self.tags[t] for t in best),
            tuple(shares.max(axis=1).tolist()),
            found.log if found.sign else None,
            found.sign,
        )

    def shares(
        self, forms: Sequence[str], tags: Sequence[str | None] | None = None
    ) -> tuple[Doubles, Posteriors]:
        """Compute every word's share of votes for each tag, and what forward-backward found."""
        emissions = self._emit(forms, tags)
        found = forward_backward(self._chains, emissions)
        votes = np.abs(found.candidates) if found.sign else self.alone(emissions)
        return self.by_tag(emissions, votes), found

    def alone(self, emissions: Emissions) -> Doubles:
        """Return p(a | x) of every candidate, up to a factor of its word, without neighbours."""
        return emissions.weight * self.model.lexicon.symbol_count[emissions.symbol]

    def by_tag(self, emissions: Emissions, votes: Doubles) -> Doubles:
        """Add votes up by word and tag, and divide by the word's votes."""
        word = np.repeat(np.arange(emissions.length), np.diff(emissions.start))
        shares = np.zeros((emissions.length, len(self.tags)))
        np.add.at(shares, (word, self.model.lexicon.tag_of[emissions.symbol]), votes)
        total = shares.sum(axis=1, keepdims=True)
        divided: Doubles = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
        return divided
