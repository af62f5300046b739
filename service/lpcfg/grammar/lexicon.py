"""The lexicon: maps words to terminals, and weighs the preterminals over each word.

The weight of preterminal a over word x is p(x | a) = p(a | x) p(x) / p(a). A word seen in training
uses its own counts, plus the tags of its signature, which count as `SIGNATURE_PSEUDO_COUNT`
occurrences. An unknown word uses the tags of its signature alone. Signatures back off from fine to
coarse ("lower case, ends in -tion", "… -on", "… -n", "lower case, one hyphen", "lower case"), and
each is interpolated with the next. Unary chains are shared by all words with a tag: for a = `NP|NN`
over the tag t = `NN`, p(a | x) = p(t | x) p(a | t, x), where p(a | t, x) leans on p(a | t).

With a tag model, the neighbours of a word also count: p(t | x) becomes

    (1 − ε) p(t | x, neighbours)^g · p(t | x)^(1 − g) / (the sum of this over t) + ε p(t | x)

with ε = `LEXICON_SHARE` and g = `TagModel.gamma`. The weights keep the form p(a | x) p(x) / p(a),
known as a "scaled likelihood" where a neural network stands below a hidden Markov model. The
p(tree) of all trees over all sentences then no longer sum to one, so p(sentence) is only a score.
It still compares trees of one sentence: p(tree | sentence) and all posteriors remain probabilities.

A threshold of 0 makes the lexicon literal: every word is its own terminal with weight
count(a → x) / count(a), and an unknown word has no preterminal.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import GrammarError, TrainingError
from lpcfg.base.jit import compiled
from lpcfg.grammar.spelling import CASE_WEIGHT, SPELLINGS
from lpcfg.grammar.tables import Bools, Doubles, Emissions, Grammar, Ints, Longs, Singles, frozen
from lpcfg.grammar.tagging import TagModel, scores, shape
from lpcfg.text.languages import LANGUAGES
from lpcfg.text.tokenize import LONGEST_KEPT
from lpcfg.trees.binarize import split_chain

MARK = "\x00"
"""First character of the terminals that stand for classes of words. No token contains it."""
ANY = MARK + "any"
"""The class of every word that a preterminal was not seen with."""

SIGNATURE_PSEUDO_COUNT = 1.0
"""The tags of a word's signature count as much as this many occurrences of the word."""
CHAIN_PSEUDO_COUNT = 2.0
"""p(a | t) counts as much as this many occurrences of the word with the tag t."""
BACKOFF_PSEUDO_COUNT = 4.0
"""The next coarser signature counts as much as this many tokens of a signature."""
RARE_AT_MOST = 10
"""Words seen at most this often train the tags of unknown words with their signature."""
TERMINAL_AT_LEAST = 5
"""Rare tokens that a signature needs before it becomes a terminal with vectors of its own."""
LEAST_SHARE = 1e-4
"""Candidates are dropped when their p(a | x) is below this share of the best candidate's."""
LEXICON_SHARE = 0.1
"""ε, the share of p(t | x) that ignores the neighbours, so that likely tags stay candidates.

At 0, two sentences of gum/dev find no tree over all their words; at 0.1 none, and F1 is the same.
"""
UNKNOWN_PSEUDO_COUNT = 0.5
"""An unknown word is treated as if it had occurred this many times."""
CACHED_WORDS = 100_000
"""How many words' candidates an Emitter remembers, none of words longer than `LONGEST_KEPT`."""

ENGLISH_ENDINGS = (
    *("ation", "ition", "ology", "graphy", "ment", "ness", "less", "able", "ible", "ical", "ious"),
    *("eous", "ized", "ised", "izes", "ises", "izing", "ising", "ship", "ward", "wise", "ally"),
    *("tive", "ative", "like", "based", "specific", "ated", "ates", "ating", "ular", "ase", "osis"),
)
"""Word endings that predict the tag of an English word better than its last three letters."""


def english_signatures(word: str) -> list[str]:
    """List the signatures of an English word, from fine to coarse."""
    lower = word.lower()
    chain = neutral_signatures(word)
    if not lower.endswith(ENGLISH_ENDINGS):  # most words
        return chain
    endings = [s for s in ENGLISH_ENDINGS if lower.endswith(s) and len(lower) > len(s) + 1]
    return [f"{shape(word)}-{max(endings, key=len)}", *chain] if endings else chain


def neutral_signatures(word: str) -> list[str]:
    """List the signatures of a word of any language, from fine to coarse: ending, shape, case."""
    form = shape(word)
    lower = word.lower()
    longest = min(3, len(lower) - 1) if form[0] not in "NP" else 0
    endings = (f"{form}~{lower[-n:]}" for n in range(longest, 0, -1))
    return list(dict.fromkeys((*endings, form, form[0])))


SIGNATURES: Mapping[str, Callable[[str], list[str]]] = {
    "english": english_signatures,
    "neutral": neutral_signatures,
}


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Counts of words and signatures, and the terminal that each maps to.

    Word x was seen with the pairs word_start[x] : word_start[x + 1] of (pair_symbol, pair_count)
    and maps to terminal `word_terminal[x]`. Signature s has tag t with probability share[s, t] and
    maps to terminal `signature_terminal[s]`. A word seen rarely or never is looked up by its
    signatures, from fine to coarse. `symbols` and `symbol_count` are those of the grammar.
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
        """Build a lexicon: word pairs[k, 1] was seen under symbol pairs[k, 0] counts[k] times."""
        if language not in LANGUAGES:
            raise TrainingError(
                f"expected a language among {', '.join(LANGUAGES)}, got {language!r}: "
                "use `neutral` for a language without rules of its own"
            )
        order = np.lexsort((pairs[:, 0], pairs[:, 1]))
        pairs, counts = pairs[order], counts[order]
        symbol_count = np.bincount(pairs[:, 0], counts, len(symbols)).astype(np.int64)
        tag_of = tags_of(symbols, symbol_count > 0)[1]
        seen = _TrainingWords(
            words, pairs, counts, tag_of, rare_threshold, SIGNATURES[LANGUAGES[language].rules]
        )
        classes = seen.signatures()
        own = [MARK + s for s, n in zip(classes.names, classes.rare, strict=True) if n]
        frequent = [w for w, n in zip(words, seen.total, strict=True) if n >= rare_threshold]
        terminals = (*frequent, *own, *([ANY] if rare_threshold > 0 else []))
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
        """The tags at the bottom of the preterminals, as the treebank writes them."""
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
        """p(a | t) of every preterminal a over its tag t."""
        of_tag = np.bincount(self.tag_of, self.symbol_count, len(self.tags))
        return self.symbol_count / np.maximum(of_tag[self.tag_of], 1)

    @cached_property
    def word_count(self) -> Longs:
        """How often every word was seen."""
        before = np.concatenate([[0], np.cumsum(self.pair_count, dtype=np.int64)])
        return frozen(np.diff(before[self.word_start]))

    @cached_property
    def _log_frequencies(self) -> list[float]:
        shares: list[float] = np.log(np.maximum(self.word_count, 1) / self.n_tokens).tolist()
        return shares

    def log_frequency(self, words: Iterable[str]) -> float:
        """Compute the log of these words' shares of all words seen, summed; an unknown word counts
        as one of UNKNOWN_PSEUDO_COUNT words.
        """
        shares, unknown = self._log_frequencies, math.log(UNKNOWN_PSEUDO_COUNT / self.n_tokens)
        rows = map(self.word_ids.get, words)
        return sum([unknown if x is None else shares[x] for x in rows])

    @cached_property
    def multiwords(self) -> frozenset[str]:
        """The words that the treebank made of several, with `_` between: `por_ciento`."""
        return frozenset(word for word in self.words if "_" in word.strip("_"))

    def seen_at_least(self, times: int) -> frozenset[str]:
        """Return the words seen at least `times` times."""
        return frozenset(self.words[x] for x in np.flatnonzero(self.word_count >= times))

    def candidates(self, word: str, tag: str | None = None) -> tuple[Ints, Doubles, int]:
        """Find the preterminals that may stand over a word.

        Args:
            tag: from the caller; then only preterminals that end in it are returned, whether or
                not they were seen with the word. A tag that the treebank does not have is ignored.

        Returns:
            The preterminals, their weights p(x | a) = p(a | x) p(x) / p(a), the word's terminal
        """
        if self.rare_threshold == 0:
            return self._literal(word)
        x, counts = self._weighted_counts(word)
        signature, given = self._signature(word), self.tag_ids.get(tag or "")
        share = self._shares(counts, signature, given)
        least = LEAST_SHARE * share.max() if given is None else 0.0
        symbols = np.flatnonzero(share > least).astype(np.int32)
        seen = max(counts.sum(), UNKNOWN_PSEUDO_COUNT)
        terminal = self.signature_terminal[signature] if x is None else self.word_terminal[x]
        return symbols, share[symbols] * seen / self.symbol_count[symbols], int(terminal)

    def _literal(self, word: str) -> tuple[Ints, Doubles, int]:
        x = self.word_ids.get(word)
        if x is None:
            return np.empty(0, np.int32), np.empty(0), -1
        counts = self._counts(x)
        symbols = np.flatnonzero(counts).astype(np.int32)
        return symbols, counts[symbols] / self.symbol_count[symbols], x

    def _weighted_counts(self, word: str) -> tuple[int | None, Doubles]:
        """Look up a word, and how often it was seen under every symbol. The counts of another
        spelling sum to no more than the occurrences that it weighs as.
        """
        x, occurrences = self.look_up(word)
        if x is None:
            return None, np.zeros(len(self.symbols))
        weight = min(1.0, occurrences / int(self.word_count[x])) if occurrences else 1.0
        return x, weight * self._counts(x)

    def look_up(self, word: str) -> tuple[int | None, float]:
        """Find a word, or a known word that it is likely to be another spelling of.

        Returns:
            x, the number of the word or of the other spelling; None if neither is known. Then as
            how many occurrences the counts of the other spelling weigh; 0 if x is the word itself
            and all of its counts stand.
        """
        x = self.word_ids.get(word)
        if x is not None:
            return x, 0.0
        spelling = SPELLINGS[LANGUAGES[self.language].rules](word, self._occurrences)
        if spelling is None:
            return None, 0.0
        return self.word_ids[spelling.word], spelling.occurrences

    def _occurrences(self, word: str) -> int:
        x = self.word_ids.get(word)
        return 0 if x is None else int(self.word_count[x])

    def terminal_of_unknown(self, word: str) -> int:
        """Find the terminal of a word's signature."""
        return int(self.signature_terminal[self._signature(word)])

    def _counts(self, x: int) -> Doubles:
        """Count how often the word was seen under every symbol."""
        pairs = slice(self.word_start[x], self.word_start[x + 1])
        counts = np.bincount(self.pair_symbol[pairs], self.pair_count[pairs], len(self.symbols))
        return counts.astype(np.float64)

    def _signature(self, word: str) -> int:
        ids = self.signature_ids
        return next(
            (ids[s] for s in SIGNATURES[LANGUAGES[self.language].rules](word) if s in ids), 0
        )

    def _shares(self, counts: Doubles, signature: int, tag: int | None) -> Doubles:
        """Compute p(a | x) of every preterminal from the word's own counts and its signature."""
        of_tag = np.bincount(self.tag_of, counts, len(self.tags))
        if tag is None:
            backed_off = of_tag + SIGNATURE_PSEUDO_COUNT * self.share[signature]
            tag_share = backed_off / backed_off.sum()
        else:
            tag_share = np.zeros(len(self.tags))
            tag_share[tag] = 1.0
        chains = counts + CHAIN_PSEUDO_COUNT * self.chain_share
        share: Doubles = (
            tag_share[self.tag_of] * chains / (of_tag[self.tag_of] + CHAIN_PSEUDO_COUNT)
        )
        return share


def tags_of(symbols: Sequence[str], preterminal: Bools) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct tags of the preterminals, and the tag of each (0 elsewhere)."""
    bottoms = {a: split_chain(symbols[a])[-1] for a in np.flatnonzero(preterminal).tolist()}
    names = tuple(sorted(set(bottoms.values())))
    ids = {name: t for t, name in enumerate(names)}
    tag_of = np.zeros(len(symbols), np.int32)
    for a, bottom in bottoms.items():
        tag_of[a] = ids[bottom]
    return names, frozen(tag_of)


@dataclass(frozen=True, eq=False)
class _Signatures:
    """Names of signatures, which of them are frequent enough to be terminals, and p(tag | s)."""

    names: tuple[str, ...]
    rare: NDArray[np.bool_]
    share: Doubles


@dataclass(frozen=True, eq=False)
class _TrainingWords:
    """The words of a treebank, from which its lexicon is built."""

    words: Sequence[str]
    pairs: Ints
    counts: Ints
    tag_of: Ints
    rare_threshold: int
    signatures_of: Callable[[str], list[str]]

    @cached_property
    def total(self) -> Doubles:
        return np.bincount(self.pairs[:, 1], self.counts, len(self.words)).astype(np.float64)

    @cached_property
    def signatures_by_word(self) -> Mapping[str, Sequence[str]]:
        """The signatures of every rare word."""
        rare = np.flatnonzero(self.total <= max(RARE_AT_MOST, self.rare_threshold))
        return {
            word: self.signatures_of(word) for word in map(self.words.__getitem__, rare.tolist())
        }

    def terminal(self, word: str, of_signature: Mapping[str, int]) -> int:
        """Return the terminal of a rare word: that of its finest signature."""
        return next(of_signature[s] for s in self.signatures_by_word[word] if s in of_signature)

    def signatures(self) -> _Signatures:
        """Collect the signatures of rare words, each interpolated with its next coarser one."""
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
            for signature in reversed(self.signatures_by_word[self.words[x]]):
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
        return _Signatures(tuple(ids), rare >= TERMINAL_AT_LEAST, share)


def _interpolate(tokens: Doubles, backoff: Sequence[int], overall: Doubles) -> Doubles:
    """Compute p(tag | signature). Coarser signatures come first and smooth the finer ones."""
    share = np.empty_like(tokens)
    for s, coarser in enumerate(backoff):
        below = share[coarser] if coarser >= 0 else overall / overall.sum()
        share[s] = (tokens[s] + BACKOFF_PSEUDO_COUNT * below) / (
            tokens[s].sum() + BACKOFF_PSEUDO_COUNT
        )
    return share


class Emitter:
    """Turns sentences into emissions under one grammar and its lexicon, and remembers their words.

    A tag model, if given, takes part in choosing the tags of words that come without a tag.
    """

    def __init__(self, grammar: Grammar, lexicon: Lexicon, tagger: TagModel | None = None) -> None:
        self._grammar = grammar
        self._lexicon = lexicon
        self._cache: dict[tuple[str, str | None], tuple[Ints, Ints, Doubles]] = {}
        self._context_emitter = (
            None if tagger is None else _ContextEmitter(grammar, lexicon, tagger)
        )

    def __call__(
        self, tokens: Sequence[str], tags: Sequence[str | None] | None = None
    ) -> Emissions:
        """Return the emissions of these tokens. A tag that is not None restricts its token."""
        if self._context_emitter is not None:
            return self._context_emitter(tokens, tags)
        candidates = [
            self._of(*pair) for pair in zip(tokens, tags or [None] * len(tokens), strict=True)
        ]
        start = np.zeros(len(candidates) + 1, np.int32)
        np.cumsum([len(symbols) for symbols, _, _ in candidates], out=start[1:])
        return Emissions(
            start=start,
            symbol=np.concatenate([symbols for symbols, _, _ in candidates]),
            entry=np.concatenate([entries for _, entries, _ in candidates]),
            weight=np.concatenate([weights for _, _, weights in candidates]),
        )

    def _of(self, word: str, tag: str | None) -> tuple[Ints, Ints, Doubles]:
        cached = self._cache.get((word, tag))
        if cached is not None:
            return cached
        symbols, weights, terminal = self._lexicon.candidates(word, tag)
        ids, any_word = self._grammar.entry_ids, len(self._lexicon.terminals) - 1
        entries = [ids.get((a, terminal), ids.get((a, any_word), -1)) for a in symbols.tolist()]
        candidates = symbols, np.array(entries, np.int32), weights
        if len(word) <= LONGEST_KEPT:
            if len(self._cache) >= CACHED_WORDS:
                self._cache.clear()
            self._cache[word, tag] = candidates
        return candidates


class _LexiconArrays(NamedTuple):
    """Counts of a lexicon and entries of a grammar, named as in `Lexicon` and `Grammar`.

    any_entry[a] is the entry of symbol a over the class of all words, or -1.
    """

    word_start: Ints
    pair_symbol: Ints
    pair_count: Ints
    share: NDArray[np.float32]
    preterminal: Ints
    symbol_count: Longs
    chain_share: Doubles
    tag_of: Ints
    entry_start: Longs
    entry_symbol: Ints
    any_entry: Ints


class _ContextEmitter:
    """Computes emissions with a tag model, which sees two words on either side of each word."""

    def __init__(self, grammar: Grammar, lexicon: Lexicon, tagger: TagModel) -> None:
        if lexicon.rare_threshold == 0 or tagger.tags != lexicon.tags:
            raise GrammarError(
                f"expected a tag model of the lexicon's {len(lexicon.tags)} tags and a lexicon "
                f"that is not literal, got {len(tagger.tags)} tags and a rare threshold of "
                f"{lexicon.rare_threshold}: train them together"
            )
        self._lexicon = lexicon
        self._tagger = tagger
        self._scale = tagger.scale.astype(np.float32)
        self._cache: dict[str, bytes] = {}
        any_entry = np.full(grammar.n_symbols, -1, np.int32)
        any_words = slice(grammar.entry_start[-2], grammar.entry_start[-1])
        any_entry[grammar.entries[any_words, 0]] = np.arange(len(grammar.entries))[any_words]
        self._counts = _LexiconArrays(
            lexicon.word_start,
            lexicon.pair_symbol,
            lexicon.pair_count,
            lexicon.share,
            np.flatnonzero(lexicon.symbol_count).astype(np.int32),
            lexicon.symbol_count,
            lexicon.chain_share,
            lexicon.tag_of,
            grammar.entry_start,
            np.ascontiguousarray(grammar.entries[:, 0]),
            any_entry,
        )

    def __call__(self, tokens: Sequence[str], tags: Sequence[str | None] | None) -> Emissions:
        given = np.full(len(tokens), -1)
        if tags is not None:
            ids = self._lexicon.tag_ids
            given[:] = [ids.get(tag or "", -1) for tag in tags]
        words = np.frombuffer(b"".join(map(self._of, tokens)), np.int64)
        words = words.reshape(len(tokens), _N_FACTS + self._tagger.width)
        tagger = self._tagger
        return Emissions(
            *_context_emissions(
                words, given, tagger.weight, self._scale, tagger.gamma, self._counts
            )
        )

    def _of(self, word: str) -> bytes:
        """Pack what the kernel needs of a word into bytes: four facts and its codes.

        The facts are x and the occurrences that `Lexicon.look_up` returns (-1 for no x), the word's
        signature, and its terminal.
        """
        cached = self._cache.get(word)
        if cached is not None:
            return cached
        lexicon = self._lexicon
        x, occurrences = lexicon.look_up(word)
        signature = lexicon._signature(word)
        terminal = lexicon.signature_terminal[signature] if x is None else lexicon.word_terminal[x]
        facts = (-1 if x is None else x, int(occurrences), signature, terminal)
        # What is only spelled in another way has the codes of the word that it stands for.
        stands_for = word if x is None or occurrences == CASE_WEIGHT else lexicon.words[x]
        packed = np.array([*facts, *self._tagger.codes(stands_for)], np.int64).tobytes()
        if len(word) <= LONGEST_KEPT:
            if len(self._cache) >= CACHED_WORDS:
                self._cache.clear()
            self._cache[word] = packed
        return packed


_N_FACTS = 4
"""Facts about a word from the lexicon. Its codes follow them."""


@compiled()
def _context_emissions(
    words: Longs,
    given: Longs,
    weight: NDArray[np.int8],
    scale: Singles,
    gamma: float,
    counts: _LexiconArrays,
) -> Any:
    """Compute the emissions of a sentence, as `Lexicon.candidates` does for a word, in context.

    Args:
        words: a row of _N_FACTS facts and codes for every word (`_ContextEmitter._of`)
        given: the tag that the caller gave each word, or -1
        weight, scale, gamma: of the tag model

    Returns:
        The four arrays of `Emissions`
    """
    score = scores(words[:, _N_FACTS:], weight, scale)
    n, symbols, tags = len(words), len(counts.symbol_count), weight.shape[1]
    start, size = np.zeros(n + 1, np.int32), n * len(counts.preterminal)
    symbol, entry = np.empty(size, np.int32), np.empty(size, np.int32)
    weights, emitted = np.empty(size), 0
    seen, of_tag, share = np.empty(symbols), np.empty(tags), np.empty(symbols)
    for i in range(n):
        x, terminal = words[i, 0], words[i, 3]
        # p(t | x, neighbours), from the word's own counts, its signature and the tag model
        tokens = _count_occurrences(x, words[i, 1], counts, seen, of_tag)
        tag_share = _tag_share(score[i], of_tag, counts.share[words[i, 2]], gamma, given[i])
        # p(a | x) = p(t | x) (count(x, a) + c p(a | t)) / (count(x, t) + c)
        best = 0.0
        for a in counts.preterminal:
            t = counts.tag_of[a]
            chains = seen[a] + CHAIN_PSEUDO_COUNT * counts.chain_share[a]
            share[a] = tag_share[t] * chains / (of_tag[t] + CHAIN_PSEUDO_COUNT)
            best = max(best, share[a])
        # emit likely preterminals with weight p(a | x) p(x) / p(a), by the word's own entry if the
        # grammar has it, otherwise by that of any word; both are sorted by preterminal
        least = LEAST_SHARE * best if given[i] < 0 else 0.0
        e, end = counts.entry_start[terminal], counts.entry_start[terminal + 1]
        for a in counts.preterminal:
            if share[a] <= least:
                continue
            while e < end and counts.entry_symbol[e] < a:
                e += 1
            own = e < end and counts.entry_symbol[e] == a
            symbol[emitted], entry[emitted] = a, e if own else counts.any_entry[a]
            weights[emitted] = share[a] * max(tokens, UNKNOWN_PSEUDO_COUNT) / counts.symbol_count[a]
            emitted += 1
        start[i + 1] = emitted
    return start, symbol[:emitted].copy(), entry[:emitted].copy(), weights[:emitted].copy()


@compiled(helper=True, inline="always")
def _count_occurrences(
    x: int, occurrences: int, counts: _LexiconArrays, seen: Doubles, of_tag: Doubles
) -> Any:
    """Write the word's counts under every symbol to `seen`, and with every tag to `of_tag`; return
    their sum. The counts of another spelling are scaled down to the occurrences it weighs as.
    """
    seen[:] = 0.0
    of_tag[:] = 0.0
    if x < 0:
        return 0.0
    pairs = range(counts.word_start[x], counts.word_start[x + 1])
    tokens = 0.0
    for pair in pairs:
        tokens += counts.pair_count[pair]
    weight = min(1.0, occurrences / tokens) if occurrences else 1.0
    for pair in pairs:
        a = counts.pair_symbol[pair]
        seen[a] = weight * counts.pair_count[pair]
        of_tag[counts.tag_of[a]] += seen[a]
    return weight * tokens


@compiled(helper=True, inline="always")
def _tag_share(
    score: Singles, of_tag: Doubles, signature_share: Singles, gamma: float, given: int
) -> Any:
    """Compute p(t | x) by the formula in the module's docstring (g = `gamma`)."""
    share = np.zeros(len(of_tag))
    if given >= 0:
        share[given] = 1.0
        return share
    # log of p(t | x, neighbours)^g p(t | x)^(1 − g), up to a constant
    largest, all_own, total = -np.inf, 0.0, 0.0
    for t in range(len(share)):
        own = of_tag[t] + SIGNATURE_PSEUDO_COUNT * signature_share[t]
        all_own += own
        share[t] = gamma * score[t] + (1.0 - gamma) * np.log(own)
        largest = max(largest, share[t])
    # normalised, and mixed with ε p(t | x)
    for t in range(len(share)):
        share[t] = np.exp(share[t] - largest)
        total += share[t]
    for t in range(len(share)):
        own = of_tag[t] + SIGNATURE_PSEUDO_COUNT * signature_share[t]
        share[t] = (1.0 - LEXICON_SHARE) * share[t] / total + LEXICON_SHARE * own / all_own
    return share
