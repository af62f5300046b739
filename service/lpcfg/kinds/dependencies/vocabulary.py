"""Number words: frequent words are themselves, all others are their signatures."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from lpcfg.grammar.lexicon import MARK, english_signatures


@dataclass(frozen=True)
class Vocabulary:
    """`names[x]` is a word or, after a mark, a signature; the last stands for all the rest."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, words: Iterable[str], least: int) -> "Vocabulary":
        """Keep words seen `least` times; signatures that rarer words have so often; the rest."""
        count = Counter(words)
        names = sorted(word for word, n in count.items() if n >= least)
        left = {word: n for word, n in count.items() if n < least}
        chains = {word: english_signatures(word) for word in left}
        for place in range(max(map(len, chains.values()), default=0)):
            found: Counter[str] = Counter()
            for word, n in left.items():
                if place < len(chains[word]):
                    found[chains[word][place]] += n
            kept = {name for name, n in found.items() if n >= least}
            names += sorted(MARK + name for name in kept)
            left = {
                word: n
                for word, n in left.items()
                if not kept.intersection(chains[word][place:][:1])
            }
        return cls((*dict.fromkeys(names), MARK))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: x for x, name in enumerate(self.names)}

    def number(self, word: str) -> int:
        """Return the number of a word: its own, or that of its finest known signature."""
        ids = self._ids
        if word in ids and not word.startswith(MARK):
            return ids[word]
        chain = english_signatures(word)
        return next((ids[MARK + s] for s in chain if MARK + s in ids), len(self.names) - 1)

    def numbers(self, words: Iterable[str]) -> list[int]:
        return [self.number(word) for word in words]
