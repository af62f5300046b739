"""Words → terminals and weights: every number of the docstrings worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.base.errors import TrainingError
from lpcfg.grammar import lexicon
from lpcfg.grammar.lexicon import (
    ANY,
    MARK,
    Emitter,
    Lexicon,
    english_signatures,
    neutral_signatures,
    tags_of,
)
from lpcfg.grammar.tables import Grammar
from lpcfg.text.tokenize import LONGEST_KEPT
from tests.strategies_grammar import entry_name

SYMBOLS = ("S", "NN", "NP|NN", "VB")
NN, NP_NN, VB = 1, 2, 3
COUNTS = {
    ("dog", NN): 6,
    ("dog", NP_NN): 2,
    ("barks", VB): 4,
    ("runs", VB): 3,
    ("runs", NN): 1,
    ("cat", NN): 1,
    ("rat", NP_NN): 1,
    ("eats", VB): 2,
}
"""NN 8 tokens, NP|NN 3, VB 9, twenty in all; NN as a tag 11, so p(NP|NN | NN) = 3/11."""


def made(counts: dict[tuple[str, int], int] = COUNTS, **options: object) -> Lexicon:
    words = sorted({word for word, _ in counts})
    pairs = np.array([(a, words.index(word)) for word, a in counts], np.int32)
    return Lexicon.from_counts(
        SYMBOLS,
        words,
        pairs,
        np.array(list(counts.values()), np.int32),
        **options,  # type: ignore[arg-type]
    )


def weights(lexicon: Lexicon, word: str, tag: str | None = None) -> dict[int, float]:
    symbols, values, _ = lexicon.candidates(word, tag)
    return dict(zip(symbols.tolist(), values.tolist(), strict=True))


# Signatures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "chain"),
    [
        ("dog", ["l~og", "l~g", "l"]),
        ("houses", ["l~ses", "l~es", "l~s", "l"]),
        ("I", ["I"]),
        ("NASA", ["U~asa", "U~sa", "U~a", "U"]),
        ("London", ["C~don", "C~on", "C~n", "C"]),
        ("iPhone", ["M~one", "M~ne", "M~e", "M"]),
        ("x-ray", ["l-~ray", "l-~ay", "l-~y", "l-", "l"]),
        ("p53", ["ld~53", "ld~3", "ld", "l"]),
        ("1,000", ["N.", "N"]),
        ("12-13", ["N-", "N"]),
        ("-", ["P"]),
        ("...", ["P.", "P"]),
        ("漢字", ["o~字", "o"]),
        ("don't", ["l.~n't", "l.~'t", "l.~t", "l.", "l"]),
    ],
)
def test_signatures_go_from_the_last_letters_to_the_case(word: str, chain: list[str]) -> None:
    assert neutral_signatures(word) == chain


def test_english_puts_its_longest_known_ending_first() -> None:
    assert english_signatures("Formation")[:2] == ["C-ation", "C~ion"]
    assert english_signatures("creative")[0] == "l-ative"  # `tive` fits as well
    assert english_signatures("able") == neutral_signatures("able")  # nothing before the ending
    assert english_signatures("dog") == neutral_signatures("dog")


@given(st.text(min_size=1))
def test_every_word_has_a_signature_of_one_letter_last(word: str) -> None:
    for signatures in (english_signatures, neutral_signatures):
        chain = signatures(word)
        assert len(chain[-1]) == 1
        assert all(part[0] == chain[-1] for part in chain)
        assert len(set(chain)) == len(chain)


# Weights ----------------------------------------------------------------------------------------


def test_tags_are_the_labels_at_the_bottom() -> None:
    names, tag_of = tags_of((*SYMBOLS, "<<"), np.array([False, True, True, True, True]))
    assert names == ("<", "NN", "VB")  # a leaf's mark is no part of its label
    assert tag_of.tolist() == [0, 1, 1, 2, 0]
    assert made().tags == ("NN", "VB")
    assert made().tag_of.tolist() == [0, 0, 0, 1]
    assert made().chain_share.tolist() == [0, 8 / 11, 3 / 11, 1]


def test_a_seen_words_tags_mix_its_counts_and_its_signature() -> None:
    """p(a | x) = p(t | x) p(a | t, x), weighed by the word's tokens over count(a).

    `runs`: tags VB 3, NN 1, and one token's worth of its signature's share s, so that
    p(t | x) = (count(x, t) + s_t) / 5, and
    p(a | t, x) = (count(x, a) + 2 p(a | t)) / (count(x, t) + 2).
    """
    found = made()
    share = found.share[found.signature_ids["l~uns"]].astype(float)
    noun, verb = (1 + share[0]) / 5, (3 + share[1]) / 5
    expected = {
        NN: noun * (1 + 2 * 8 / 11) / 3 * 4 / 8,
        NP_NN: noun * (0 + 2 * 3 / 11) / 3 * 4 / 3,
        VB: verb * 4 / 9,
    }
    assert weights(found, "runs") == pytest.approx(expected, rel=1e-12)


def test_an_unknown_word_has_its_signatures_tags_alone() -> None:
    found = made()
    share = found.share[found.signature_ids["l~uns"]].astype(float)
    half = lexicon.UNKNOWN_PSEUDO_COUNT
    expected = {
        NN: share[0] * 8 / 11 * half / 8,
        NP_NN: share[0] * 3 / 11 * half / 3,
        VB: share[1] * half / 9,
    }
    assert weights(found, "guns") == pytest.approx(expected, rel=1e-12)


def test_a_coarser_signature_counts_as_four_tokens() -> None:
    """share(s) = (tokens of s with tag t + 4 share(coarser)) / (tokens of s + 4), over rarer words.

    All words here are rare enough to tell of others: they are what `l` has, 11 nouns and 9 verbs.
    """
    found = made()
    assert found.signatures[0] == "l"
    row = {name: found.share[s].astype(float) for s, name in enumerate(found.signatures)}
    overall = np.array([11, 9]) * 1.001 / 20.02
    expected = {"l": (np.array([11, 9]) + 4 * overall) / 24}
    assert row["l"] == pytest.approx(expected["l"], abs=1e-6)  # float32
    expected["l~s"] = (np.array([1, 9]) + 4 * row["l"]) / 14
    expected["l~ns"] = (np.array([1, 3]) + 4 * row["l~s"]) / 8
    for name in ("l~s", "l~ns"):
        assert row[name] == pytest.approx(expected[name], abs=1e-6)


def test_an_unseen_signature_backs_off_to_the_finest_seen_one() -> None:
    found = made()
    names = [found.signatures[found._signature(word)] for word in ("puns", "gates", "fox", "ox")]
    assert names == ["l~uns", "l~s", "l", "l"]
    assert found.signatures[found._signature("1984")] == "l"  # no digits here: the first of all


def test_a_tag_from_the_caller_admits_all_its_chains_and_nothing_else() -> None:
    found = made()
    assert weights(found, "barks", "NN") == pytest.approx(
        {NN: 8 / 11 * 4 / 8, NP_NN: 3 / 11 * 4 / 3}, rel=1e-12
    )
    dog = weights(found, "dog", "NN")
    assert dog[NN] == pytest.approx((6 + 2 * 8 / 11) / 10 * 8 / 8, rel=1e-12)
    assert dog[NP_NN] == pytest.approx((2 + 2 * 3 / 11) / 10 * 8 / 3, rel=1e-12)
    assert set(weights(found, "zebra", "VB")) == {VB}


@pytest.mark.parametrize("tag", ["", "XX", None])
def test_a_tag_the_treebank_does_not_have_is_ignored(tag: str | None) -> None:
    rare = {**COUNTS, ("the", VB): 1_000_000, ("the", NN): 1}
    for word in ("the", "runs", "zebra"):
        assert weights(made(rare), word, tag) == weights(made(rare), word)


def test_candidates_far_less_likely_than_the_best_are_left_out() -> None:
    found = made({**COUNTS, ("the", VB): 1_000_000})
    assert set(weights(found, "the")) == {VB}
    assert set(weights(found, "the", "NN")) == {NN, NP_NN}


# Terminals --------------------------------------------------------------------------------------


def test_rare_words_share_a_terminal_when_their_signature_has_enough_of_them() -> None:
    rare = {(word, NN): 1 for word in ("bat", "cat", "hat", "mat", "rat", "dot", "pen")}
    found = made({**COUNTS, **rare}, rare_threshold=3)
    assert found.terminals == (
        "barks", "dog", "runs", MARK + "l", MARK + "l~t", MARK + "l~at", ANY,
    )  # fmt: skip
    terminals = [found.terminals[x] for x in found.word_terminal]
    names = dict(zip(found.words, terminals, strict=True))
    assert names["dog"] == "dog"
    assert names["cat"] == MARK + "l~at"
    assert names["dot"] == ANY  # `l~ot` has just one; only the finest signature counts
    assert names["pen"] == names["eats"] == ANY


def test_terminals_of_words_never_seen_are_those_of_their_signatures() -> None:
    rare = {(word, NN): 1 for word in ("bat", "cat", "hat", "mat", "rat")}
    found = made({**COUNTS, **rare}, rare_threshold=3)
    assert found.terminals[found.candidates("vat")[2]] == MARK + "l~at"
    assert found.terminals[found.candidates("vet")[2]] == MARK + "l~t"
    assert found.terminals[found.candidates("cat")[2]] == MARK + "l~at"
    assert found.terminals[found.candidates("dog")[2]] == "dog"


def test_a_literal_lexicon_knows_its_words_and_no_others() -> None:
    found = made(rare_threshold=0)
    assert found.terminals == found.words
    assert found.signatures == ()
    assert weights(found, "runs") == {NN: 1 / 8, VB: 3 / 9}
    assert weights(found, "zebra") == {}
    assert found.candidates("zebra")[2] == -1
    total = sum(
        (np.array([weights(found, word).get(a, 0.0) for a in (NN, NP_NN, VB)])
         for word in found.words), np.zeros(3),
    )  # fmt: skip
    np.testing.assert_allclose(total, 1.0, rtol=1e-12)  # p(x | a) sums to one over words


def test_a_treebank_of_frequent_words_still_has_a_signature_for_others() -> None:
    found = made({("the", VB): 50, ("dog", NN): 50}, rare_threshold=3)
    assert found.signatures == ("",)
    assert found.share[0] == pytest.approx([0.5, 0.5])
    assert set(weights(found, "zebra")) == {NN, VB}


def test_an_unknown_language_is_refused() -> None:
    among = "english, spanish, german, french, neutral"
    message = f"expected a language among {among}, got 'klingon': use `neutral`"
    with pytest.raises(TrainingError, match=message):
        made(language="klingon")


def test_the_lexicon_counts_words_and_tokens() -> None:
    found = made()
    assert found.n_tokens == 20
    assert found.symbol_count.tolist() == [0, 8, 3, 9]
    assert not found.symbol_count.flags.writeable
    assert found.word_ids["cat"] == 1
    assert found.tag_ids == {"NN": 0, "VB": 1}


# Emissions --------------------------------------------------------------------------------------


def grammar_over(found: Lexicon) -> Grammar:
    """Build a grammar with an entry for all that was seen, and ANY under every preterminal."""
    seen = {
        (int(found.word_terminal[x]), a) for (word, a) in COUNTS for x in [found.word_ids[word]]
    }
    if ANY in found.terminals:
        seen |= {(len(found.terminals) - 1, a) for a in (NN, NP_NN, VB)}
    entries = np.array([(a, x) for x, a in sorted(seen)])
    return Grammar(SYMBOLS, 1, np.array([[0, 1, 3]]), found.terminals, entries)


def test_emissions_are_the_candidates_with_their_entries() -> None:
    found = made()
    grammar = grammar_over(found)
    emit = Emitter(grammar, found)
    emissions = emit(["dog", "zebra", "barks"], [None, "VB", "NN"])
    assert emissions.length == 3
    for w, (word, tag) in enumerate([("dog", None), ("zebra", "VB"), ("barks", "NN")]):
        rows = slice(emissions.start[w], emissions.start[w + 1])
        expected = weights(found, word, tag)
        assert emissions.symbol[rows].tolist() == list(expected)
        assert emissions.weight[rows].tolist() == list(expected.values())
    names = [entry_name(grammar, e) for e in emissions.entry.tolist()]
    dog = weights(found, "dog")
    assert names[: len(dog)] == [
        "NN → dog", "NP|NN → dog", *([f"VB → {ANY}"] if VB in dog else []),
    ]  # fmt: skip
    assert names[len(dog) :] == [f"VB → {ANY}", f"NN → {ANY}", f"NP|NN → {ANY}"]


def test_a_literal_lexicon_emits_nothing_for_an_unknown_word() -> None:
    found = made(rare_threshold=0)
    emissions = Emitter(grammar_over(found), found)(["dog", "zebra"])
    assert emissions.start.tolist() == [0, 2, 2]
    assert (emissions.entry >= 0).all()


def test_an_emitter_remembers_a_bounded_number_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "CACHED_WORDS", 3)
    found = made()
    emit = Emitter(grammar_over(found), found)
    first = emit([f"w{k}" for k in range(10)])
    assert len(emit._cache) <= 3
    again = emit([f"w{k}" for k in range(10)])
    for name in ("start", "symbol", "entry", "weight"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    asked = []
    candidates = Lexicon.candidates
    monkeypatch.setattr(
        Lexicon, "candidates", lambda *given: asked.append(given[1]) or candidates(*given)
    )
    emit(["w9", "w9", "w8"])
    assert asked == []


def test_an_emitter_remembers_no_word_of_very_many_letters() -> None:
    found = made()
    emit = Emitter(grammar_over(found), found)
    emit(["w" * LONGEST_KEPT, "w" * (LONGEST_KEPT + 1)])
    assert [word for word, _ in emit._cache] == ["w" * LONGEST_KEPT]
