"""Words → terminals: known words, signatures of rare and unknown ones, and their weights.

The weight of preterminal a over word x is p(x | a) = p(a | x) p(x) / p(a). A word that was seen
keeps its own counts and leans on its signature's tags with the strength of `SIGNATURE_WORDS`
occurrences; an unknown word has its signature's alone. Signatures back off from fine to coarse
("lower case, ends in -tion", "… -on", "… -n", "lower case, one hyphen", "lower case"), each level
interpolated with the next. A chain of labels the word was not seen with has its share of the
word's tag: p(a | x) = p(t | x) p(a | t, x), for a = `NP|NN` over the tag t = `NN`.

A threshold of 0 makes the lexicon literal: every word is its own terminal with weight
count(a → x) / count(a), and a word never seen has no preterminal at all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lpcfg.errors import TrainingError
from lpcfg.grammar import Bools, Doubles, Emissions, Grammar, Ints, Longs, frozen
from lpcfg.trees import split_chain

MARK = "\x00"
"""Stands before terminals that are classes of words; no token contains it."""
ANY = MARK + "any"
"""The class of every word that a preterminal was not seen with."""

SIGNATURE_WORDS = 1.0
"""How many occurrences of a word its signature's tags weigh as much as."""
CHAIN_WORDS = 2.0
"""How many occurrences of a word and tag the tag's usual chains weigh as much as."""
LEVEL_WORDS = 4.0
"""How many tokens of a signature the next coarser signature weighs as much as."""
RARE_AT_MOST = 10
"""Words seen up to so often say which tags unknown words of their signature have."""
LEAST_OF_A_TERMINAL = 5
"""Rare tokens that a signature needs to be a terminal with vectors of its own."""
LEAST_SHARE = 1e-4
"""Candidates whose p(a | x) is below this share of the best one's are left out."""
OTHER_CASE_WORDS = 1.0
"""How many occurrences of an unknown word its other spelling in case (`THE`: `the`) weighs as."""
UNSEEN_WORDS = 0.5
"""How many occurrences an unknown word is taken to have had."""
CACHED_WORDS = 100_000
"""Words whose candidates an Emitter remembers."""

ENGLISH_ENDINGS = (
    *("ation", "ition", "ology", "graphy", "ment", "ness", "less", "able", "ible", "ical", "ious"),
    *("eous", "ized", "ised", "izes", "ises", "izing", "ising", "ship", "ward", "wise", "ally"),
    *("tive", "ative", "like", "based", "specific", "ated", "ates", "ating", "ular", "ase", "osis"),
)
"""Endings that say more of an English word's tag than its last three letters do."""


def english_signatures(word: str) -> list[str]:
    """Signatures of an English word, from fine to coarse."""
    lower = word.lower()
    chain = neutral_signatures(word)
    endings = [s for s in ENGLISH_ENDINGS if lower.endswith(s) and len(lower) > len(s) + 1]
    return [f"{_shape(word)}-{max(endings, key=len)}", *chain] if endings else chain


def neutral_signatures(word: str) -> list[str]:
    """Signatures of a word of any language, from fine to coarse: last characters, shape, case."""
    shape = _shape(word)
    lower = word.lower()
    longest = min(3, len(lower) - 1) if shape[0] not in "NP" else 0
    endings = (f"{shape}~{lower[-n:]}" for n in range(longest, 0, -1))
    return list(dict.fromkeys((*endings, shape, shape[0])))


SIGNATURES: Mapping[str, Callable[[str], list[str]]] = {
    "english": english_signatures,
    "neutral": neutral_signatures,
}


def _shape(word: str) -> str:
    """A letter for the case of its letters, then marks of digits, inner hyphens and other signs.

    N: no letters but digits, P: neither, l: lower, C: Capital first, U: UPPER, I: one capital,
    M: miXed, o: a script without case.
    """
    letters = "".join(c for c in word if c.isalpha())
    digits = any(c.isdigit() for c in word)
    if not letters:
        case = "N" if digits else "P"
    elif letters.islower():
        case = "l"
    elif letters.isupper():
        case = "U" if len(letters) > 1 else "I"
    elif letters.istitle():
        case = "C"
    else:
        case = "M" if letters != letters.swapcase() else "o"
    inner = word[1:-1]
    signs = any(not c.isalnum() and c != "-" for c in inner)
    return case + "d" * (digits and case != "N") + "-" * ("-" in inner) + "." * signs


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Counts of words and of signatures, and the terminals that both map to.

    Word x was seen as pairs word_start[x] : word_start[x + 1] of (pair_symbol, pair_count) and is
    terminal `word_terminal[x]`. Signature s has tag t with probability share[s, t] and is terminal
    `signature_terminal[s]`. Signatures of words seen rarely or never are looked up from fine to
    coarse; `symbols` and `symbol_count` are those of the grammar.
    """

    language: str
    rare_threshold: int
    symbols: tuple[str, ...]
    symbol_count: Longs
    terminals: tuple[str, ...]
    words: tuple[str, ...]
    word_terminal: Ints
    word_start: Ints
    pair_symbol: Ints
    pair_count: Ints
    signatures: tuple[str, ...]
    signature_terminal: Ints
    share: NDArray[np.float32]

    @classmethod
    def from_counts(
        cls,
        symbols: Sequence[str],
        words: Sequence[str],
        pairs: Ints,
        counts: Ints,
        *,
        rare_threshold: int = 3,
        language: str = "english",
    ) -> "Lexicon":
        """The lexicon of `counts[k]` tokens of word pairs[k, 1] under preterminal pairs[k, 0]."""
        if language not in SIGNATURES:
            raise TrainingError(
                f"expected a language among {', '.join(SIGNATURES)}, got {language!r}: "
                "use `neutral` for a language without rules of its own"
            )
        order = np.lexsort((pairs[:, 0], pairs[:, 1]))
        pairs, counts = pairs[order], counts[order]
        symbol_count = np.bincount(pairs[:, 0], counts, len(symbols)).astype(np.int64)
        tag_of = tags_of(symbols, symbol_count > 0)[1]
        seen = _Seen(words, pairs, counts, tag_of, rare_threshold, SIGNATURES[language])
        classes = seen.signatures()
        own = [MARK + s for s, n in zip(classes.names, classes.rare, strict=True) if n]
        known = [w for w, n in zip(words, seen.total, strict=True) if n >= rare_threshold]
        terminals = (*known, *own, *([ANY] if rare_threshold > 0 else []))
        ids = {name: x for x, name in enumerate(terminals)}
        of_signature = {s: ids.get(MARK + s, len(ids) - 1) for s in classes.names}
        return cls(
            language=language,
            rare_threshold=rare_threshold,
            symbols=tuple(symbols),
            symbol_count=frozen(symbol_count),
            terminals=terminals,
            words=tuple(words),
            word_terminal=frozen(
                np.array(
                    [ids[w] if w in ids else seen.terminal(w, of_signature) for w in words],
                    np.int32,
                )
            ),
            word_start=frozen(
                np.searchsorted(pairs[:, 1], np.arange(len(words) + 1)).astype(np.int32)
            ),
            pair_symbol=frozen(pairs[:, 0].astype(np.int32)),
            pair_count=frozen(counts.astype(np.int32)),
            signatures=classes.names,
            signature_terminal=frozen(np.array(list(of_signature.values()), np.int32)),
            share=frozen(classes.share.astype(np.float32)),
        )

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags at the bottom of the preterminals, as people write them."""
        return tags_of(self.symbols, self.symbol_count > 0)[0]

    @cached_property
    def tag_of(self) -> Ints:
        """The tag of every preterminal (0 at in-terminals)."""
        return tags_of(self.symbols, self.symbol_count > 0)[1]

    @cached_property
    def tag_ids(self) -> Mapping[str, int]:
        return {tag: t for t, tag in enumerate(self.tags)}

    @cached_property
    def word_ids(self) -> Mapping[str, int]:
        return {word: x for x, word in enumerate(self.words)}

    @cached_property
    def signature_ids(self) -> Mapping[str, int]:
        return {signature: s for s, signature in enumerate(self.signatures)}

    @cached_property
    def n_tokens(self) -> int:
        return int(self.symbol_count.sum())

    @cached_property
    def chain_share(self) -> Doubles:
        """p(a | t) of every preterminal a with tag t."""
        of_tag = np.bincount(self.tag_of, self.symbol_count, len(self.tags))
        return self.symbol_count / np.maximum(of_tag[self.tag_of], 1)

    def candidates(self, word: str, tag: str | None = None) -> tuple[Ints, Doubles, int]:
        """Preterminals that may stand over a word, their weights, and the word's terminal.

        A tag from the caller admits just the preterminals that end in it, seen with the word or
        not. A tag the treebank does not have is no help and is passed over.
        """
        if self.rare_threshold == 0:
            return self._literal(word)
        x, trust = self._known(word)
        counts = np.zeros(len(self.symbols)) if x is None else trust * self._counts(x)
        signature, given = self._signature(word), self.tag_ids.get(tag or "")
        share = self._shares(counts, signature, given)
        least = LEAST_SHARE * share.max() if given is None else 0.0
        symbols = np.flatnonzero(share > least).astype(np.int32)
        seen = max(counts.sum(), UNSEEN_WORDS)
        terminal = self.signature_terminal[signature] if x is None else self.word_terminal[x]
        return symbols, share[symbols] * seen / self.symbol_count[symbols], int(terminal)

    def _literal(self, word: str) -> tuple[Ints, Doubles, int]:
        x = self.word_ids.get(word)
        if x is None:
            return np.empty(0, np.int32), np.empty(0), -1
        counts = self._counts(x)
        symbols = np.flatnonzero(counts).astype(np.int32)
        return symbols, counts[symbols] / self.symbol_count[symbols], x

    def _known(self, word: str) -> tuple[int | None, float]:
        """The word, or an unknown word's other spelling in case, and how far its counts count."""
        ids = self.word_ids
        if word in ids:
            return ids[word], 1.0
        other = next((w for w in (word.lower(), word.capitalize()) if w in ids), None)
        if other is None:
            return None, 0.0
        return ids[other], min(1.0, OTHER_CASE_WORDS / self._counts(ids[other]).sum())

    def _counts(self, x: int) -> Doubles:
        """How often the word was seen under every symbol."""
        pairs = slice(self.word_start[x], self.word_start[x + 1])
        counts = np.bincount(self.pair_symbol[pairs], self.pair_count[pairs], len(self.symbols))
        return counts.astype(np.float64)

    def _signature(self, word: str) -> int:
        ids = self.signature_ids
        return next((ids[s] for s in SIGNATURES[self.language](word) if s in ids), 0)

    def _shares(self, counts: Doubles, signature: int, tag: int | None) -> Doubles:
        """p(a | x) of every preterminal, from the word's own counts and its signature."""
        of_tag = np.bincount(self.tag_of, counts, len(self.tags))
        if tag is None:
            backed_off = of_tag + SIGNATURE_WORDS * self.share[signature]
            tag_share = backed_off / backed_off.sum()
        else:
            tag_share = np.zeros(len(self.tags))
            tag_share[tag] = 1.0
        chains = counts + CHAIN_WORDS * self.chain_share
        share: Doubles = tag_share[self.tag_of] * chains / (of_tag[self.tag_of] + CHAIN_WORDS)
        return share


def tags_of(symbols: Sequence[str], preterminal: Bools) -> tuple[tuple[str, ...], Ints]:
    """The distinct labels at the bottom of preterminals, and every preterminal's (0 elsewhere)."""
    bottoms = {a: split_chain(symbols[a])[-1] for a in np.flatnonzero(preterminal).tolist()}
    names = tuple(sorted(set(bottoms.values())))
    ids = {name: t for t, name in enumerate(names)}
    tag_of = np.zeros(len(symbols), np.int32)
    for a, bottom in bottoms.items():
        tag_of[a] = ids[bottom]
    return names, frozen(tag_of)


@dataclass(frozen=True, eq=False)
class _Signatures:
    """Signature names, whether each has rare tokens enough to be a terminal, and p(tag | it)."""

    names: tuple[str, ...]
    rare: NDArray[np.bool_]
    share: Doubles


@dataclass(frozen=True, eq=False)
class _Seen:
    """A treebank's words as its lexicon is made from them."""

    words: Sequence[str]
    pairs: Ints
    counts: Ints
    tag_of: Ints
    rare_threshold: int
    chain_of: Callable[[str], list[str]]

    @cached_property
    def total(self) -> Doubles:
        return np.bincount(self.pairs[:, 1], self.counts, len(self.words)).astype(np.float64)

    def terminal(self, word: str, of_signature: Mapping[str, int]) -> int:
        """The terminal of a rare word: its finest signature's."""
        return next(of_signature[s] for s in self.chain_of(word) if s in of_signature)

    def signatures(self) -> _Signatures:
        """Signatures of the rarer words, with tags interpolated from coarse to fine."""
        n_tags = int(self.tag_of.max(initial=-1)) + 1
        if self.rare_threshold == 0:
            return _Signatures((), np.empty(0, np.bool_), np.empty((0, n_tags)))
        by_tag = np.zeros((len(self.words), n_tags))
        np.add.at(by_tag, (self.pairs[:, 1], self.tag_of[self.pairs[:, 0]]), self.counts)
        helpful = self.total <= max(RARE_AT_MOST, self.rare_threshold)
        ids: dict[str, int] = {}
        backoff: list[int] = []
        rows: list[tuple[int, int]] = []
        for x in np.flatnonzero(helpful).tolist():
            coarser = -1
            for signature in reversed(self.chain_of(self.words[x])):
                if signature not in ids:
                    ids[signature] = len(ids)
                    backoff.append(coarser)
                coarser = ids[signature]
                rows.append((coarser, x))
        if not ids:
            ids, backoff, rows = {"": 0}, [-1], [(0, x) for x in range(len(self.words))]
        of_signature, of_word = np.array(rows).T
        tokens = np.zeros((len(ids), n_tags))
        np.add.at(tokens, of_signature, by_tag[of_word])
        is_rare = self.total[of_word] < self.rare_threshold
        rare = np.bincount(of_signature[is_rare], self.total[of_word[is_rare]], len(ids))
        share = _interpolate(
            tokens, backoff, by_tag[helpful].sum(axis=0) + by_tag.sum(axis=0) / 1e3
        )
        return _Signatures(tuple(ids), rare >= LEAST_OF_A_TERMINAL, share)


def _interpolate(tokens: Doubles, backoff: Sequence[int], overall: Doubles) -> Doubles:
    """p(tag | signature), coarser signatures (which come first) filling in for finer ones."""
    share = np.empty_like(tokens)
    for s, coarser in enumerate(backoff):
        below = share[coarser] if coarser >= 0 else overall / overall.sum()
        share[s] = (tokens[s] + LEVEL_WORDS * below) / (tokens[s].sum() + LEVEL_WORDS)
    return share


class Emitter:
    """Sentences → emissions under one grammar and its lexicon; remembers words it has met."""

    def __init__(self, grammar: Grammar, lexicon: Lexicon) -> None:
        self._grammar = grammar
        self._lexicon = lexicon
        self._met: dict[tuple[str, str | None], tuple[Ints, Ints, Doubles]] = {}

    def __call__(
        self, tokens: Sequence[str], tags: Sequence[str | None] | None = None
    ) -> Emissions:
        """What may stand over each token, given the tags that are not None."""
        met = [self._of(*pair) for pair in zip(tokens, tags or [None] * len(tokens), strict=True)]
        start = np.zeros(len(met) + 1, np.int32)
        np.cumsum([len(symbols) for symbols, _, _ in met], out=start[1:])
        return Emissions(
            start=start,
            symbol=np.concatenate([symbols for symbols, _, _ in met]),
            entry=np.concatenate([entries for _, entries, _ in met]),
            weight=np.concatenate([weights for _, _, weights in met]),
        )

    def _of(self, word: str, tag: str | None) -> tuple[Ints, Ints, Doubles]:
        known = self._met.get((word, tag))
        if known is not None:
            return known
        symbols, weights, terminal = self._lexicon.candidates(word, tag)
        ids, any_word = self._grammar.entry_ids, len(self._lexicon.terminals) - 1
        entries = [ids.get((a, terminal), ids.get((a, any_word), -1)) for a in symbols.tolist()]
        if len(self._met) >= CACHED_WORDS:
            self._met.clear()
        found = symbols, np.array(entries, np.int32), weights
        self._met[word, tag] = found
        return found
