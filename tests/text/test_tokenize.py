"""Sentences and tokens: conventions, exact offsets on hostile strings, linear time."""

import math
import random
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from lpcfg.text.tokenize import TokenizedSentence, penn_forms, segments, tokenize


def segment(text: str) -> list[TokenizedSentence]:
    return list(segments(text))


def words(text: str) -> list[str]:
    return [token.text for token in tokenize(text)]


def forms(text: str) -> list[str]:
    return [token.form for token in tokenize(text)]


def sentences(text: str) -> list[str]:
    return [sentence.text for sentence in segment(text)]


# Tokens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog can't bark.", "The dog ca n't bark ."),
        ("You'd've said I shouldn’t've.", "You 'd 've said I should n’t 've ."),
        ("वह गया। هل ذهب؟", "वह गया । هل ذهب ؟"),
        ("DON'T! I'd say they'll've gone.", "DO N'T ! I 'd say they 'll 've gone ."),
        ("The dog's and the dogs' bones", "The dog 's and the dogs ' bones"),
        ("I cannot; we're gonna, 'twas", "I can not ; we 're gon na , 't was"),
        ("O'Brien's l'eau at five o'clock", "O'Brien 's l'eau at five o'clock"),
        ("'em in the '90s and the 1990's", "'em in the '90s and the 1990 's"),
        ("in (see [3]) {or not}", "in ( see [ 3 ] ) { or not }"),
        ("He said, 'yes' -- \"no\"!", "He said , ' yes ' -- \" no \" !"),
        ("``Yes,'' he said...", "`` Yes , '' he said ..."),
    ],
)
def test_clitics_quotes_and_brackets_are_tokens(text: str, expected: str) -> None:
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wild-type mice", "wild - type mice"),
        ("non-linear, anti-rabbit, Re-elected", "non-linear , anti-rabbit , Re-elected"),
        ("non-HLA-linked", "non-HLA - linked"),
        ("a 2-fold and ten-fold rise", "a 2-fold and ten-fold rise"),
        ("pre- and post-natal", "pre - and post-natal"),
        ("e-mail an X-ray of E-cadherin", "e-mail an X-ray of E - cadherin"),
        ("10 mg/ml or and/or", "10 mg / ml or and / or"),
        ("Dhcr7-/- and +/+ mice", "Dhcr7 - / - and + / + mice"),
        ("1998–2004 — the 3′ end", "1998 – 2004 — the 3 ′ end"),
    ],
)
def test_hyphens_and_slashes_are_tokens_but_for_prefixes_and_suffixes(
    text: str, expected: str
) -> None:
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.b/c-d?e=f#g, or www.x.org.", "see https://a.b/c-d?e=f#g , or www.x.org ."),
        ("cra.org/a-b/c (doi:10.1371/j.p-1.x)", "cra.org/a-b/c ( doi:10.1371/j.p-1.x )"),
        ("Mail a.b-c+d@x-y.co.uk.", "Mail a.b-c+d@x-y.co.uk ."),
        ("@user likes #hashtag", "@user likes #hashtag"),
        ("Hi:) :) ;-) :D", "Hi : ) :) ;-) :D"),
        ("Hi😀👍🏽👨‍👩‍👧🇩🇪🇫🇷!", "Hi 😀 👍🏽 👨‍👩‍👧 🇩🇪 🇫🇷 !"),
        ("$3.50, US$5, 7% of 1,000,000.", "$ 3.50 , US$ 5 , 7 % of 1,000,000 ."),
        (".05 [1,2] 3,36 1.2.3", ".05 [ 1 , 2 ] 3 , 36 1.2.3"),
        ("at 12:30 or 8:30:15, 1:100", "at 12:30 or 8:30:15 , 1 : 100"),
        # GUM, MASC and GENIA write 1/2 as one token, CRAFT alone as three.
        ("on 12/31/2020 in 1/2 of 1/10/2", "on 12/31/2020 in 1/2 of 1 / 10/2"),
        ("37°C and 5° C", "37 °C and 5 ° C"),
        ("R&D, AT&T, a&b", "R&D , AT&T , a & b"),
        ("C++ Ca2+ K+, 20+ x+y", "C++ Ca2+ K+ , 20 + x + y"),
        ("what?! **bold** a==b", "what ?! ** bold ** a == b"),
        ("cafe\u0301 na\u00efve Łódź 你好", "cafe\u0301 na\u00efve Łódź 你好"),
    ],
)
def test_what_is_written_as_one_stays_one(text: str, expected: str) -> None:
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. Smith met Dr. J. Doe.", "Mr. Smith met Dr. J. Doe ."),
        ("in the U.S. (cf. Fig. 3, e.g. p. 5).", "in the U.S. ( cf. Fig. 3 , e.g. p. 5 ) ."),
        ("It is 5 p.m.", "It is 5 p.m."),
        ("Acme Inc. and al. etc.", "Acme Inc. and al. etc."),
        ("He took vitamin C.", "He took vitamin C ."),
        ("No. 5 or no. Fine.", "No. 5 or no . Fine ."),
        ('He is a "Mr."', 'He is a " Mr . "'),
        ("He came. She went. (They stayed.)", "He came . She went . ( They stayed . )"),
        ("He came.She went to Node.js", "He came . She went to Node.js"),
        ("2. The end. 3. More", "2. The end . 3 . More"),
    ],
)
def test_a_full_stop_is_a_token_unless_it_belongs_to_its_word(text: str, expected: str) -> None:
    assert words(text) == expected.split()


def test_offsets_count_code_points_of_the_callers_text() -> None:
    text = "Hi 😀 “you”\u00a0there"
    assert [(t.text, t.start, t.end) for t in tokenize(text)] == [
        ("Hi", 0, 2),
        ("😀", 3, 4),
        ("“", 5, 6),
        ("you", 6, 9),
        ("”", 9, 10),
        ("there", 11, 16),
    ]


TABLE = Path(__file__).parents[1] / "golden" / "tokens.txt"


def table() -> list[tuple[str, str]]:
    """Read the texts of golden/tokens.txt, each with its tokens."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("# ")]
    return [(text, tokens) for text, tokens in rows]


def test_the_table_of_tokens_has_300_texts_each_once() -> None:
    texts = [text for text, _ in table()]
    assert len(texts) == len(set(texts)) >= 300


@pytest.mark.parametrize(("text", "expected"), table())
def test_tokens_are_those_of_the_table(text: str, expected: str) -> None:
    assert words(text) == expected.split(" ")
    assert words(expected) == expected.split(" "), "tokens are to stay as they are"
    assert sentences(text) == [text]


# Forms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a) [b] {c}", "-LRB- a -RRB- [ b ] -LCB- c -RCB-"),
        ('"Yes," he said. "No."', "`` Yes , '' he said . `` No . ''"),
        ('("a")', "-LRB- `` a '' -RRB-"),
        ('a " b " c', "a `` b '' c"),
        ("“a” «b» „c‟ ‘d’ 'e'", "`` a '' `` b '' `` c '' ` d ' ` e '"),
        ('“a"', "`` a ''"),
        ("I’m the dog’s… — don’t", "I 'm the dog 's ... -- do n't"),
        ("\ufeffHi so\u00adft", "Hi soft"),
        ("\u200b a", "\u200b a"),
        ("cafe\u0301 \ud800", "caf\u00e9 \ufffd"),
        (":-)", ":--RRB-"),
        ("So good!! What?! Hm.... a --- b", "So good ! What ? Hm ... a -- b"),
        ("dont DONT Im thats youll", "do n't DO N'T I 'm that 's you 'll"),
        ("`a.b` Fish &amp; &lt;", "a.b Fish & <"),
    ],
)
def test_forms_are_penn_conventions(text: str, expected: str) -> None:
    assert forms(text) == expected.split(" ")


def test_forms_of_given_tokens_turn_quotes_by_tags_or_in_turn() -> None:
    tokens = ['"', "'", "’s", '"', "(", "''", '"']
    assert penn_forms(tokens) == ("``", "'", "'s", "''", "-LRB-", "''", "``")
    tags = ["''", "``", "POS", "``", "-LRB-", "''", "NN"]
    assert penn_forms(tokens, tags) == ("''", "`", "'s", "``", "-LRB-", "''", "``")
    assert penn_forms([""]) == ("",)


def test_forms_of_penn_forms_are_the_same() -> None:
    text = "He said: “It's (so)… ‘fine’ — {ok}”"
    assert list(penn_forms(forms(text))) == forms(text)


# Sentences ----------------------------------------------------------------------------------------


def test_sentences_carry_their_place_and_their_tokens() -> None:
    sentence = segment("  A b.\n\nC d. ")[1]
    assert (sentence.text, sentence.start, sentence.end) == ("C d.", 8, 12)
    assert [(t.text, t.start, t.end) for t in sentence.tokens] == [
        ("C", 8, 9),
        ("d", 10, 11),
        (".", 11, 12),
    ]


# Every string -------------------------------------------------------------------------------------

NASTY = [
    *"aAbé1 .,;:!?'\"`()[]{}<>/\\-–—_@#$%&*+=|~^…“”‘’«»。！″°´\t\n\r\v\f\0\x1c\x85",
    *"\u00a0\u2028\u2029\u3000\u200b\u200d\u2060\ufeff\u00ad\u0301\u20e3\ufe0f\u202e\U000e0067",
    *"\ud800\udfff\uffff\U0010ffff😀👍🏽🇩🇫☎字あ한مשक्",
    *["Mr.", "U.S.", "e.g.", "don't", "'s", "n't", "cannot", "'tis", "http://", "www.", "@x.y"],
    *["10.1000/", "12:30", "1,000", "non-", "-fold", "...", "--", "``", "''", "\r\n", "\n\n", "  "],
    *["A.", " B", "etc.", "No. 5", "(a)", "1. ", "\n- ", ":)", "a.com/", "C++", "AT&T", ".Then"],
]


def nasty_strings(count: int) -> list[str]:
    generator = random.Random(20130610)
    strings = []
    for _ in range(count):
        length = generator.randrange(16)
        pieces = generator.choices(NASTY, k=length)
        if generator.random() < 0.2:
            pieces += [chr(generator.randrange(0x110000)) for _ in range(4)]
            generator.shuffle(pieces)
        strings.append("".join(pieces))
    return strings


def lost_or_moved(text: str, result: list[TokenizedSentence]) -> str | None:
    """Describe faults in the places of sentences and tokens, if there are any."""
    position = 0
    for sentence in result:
        if text[sentence.start : sentence.end] != sentence.text or not sentence.tokens:
            return f"{sentence} is not where it says"
        for token in sentence.tokens:
            if not sentence.start <= token.start < token.end <= sentence.end:
                return f"{token} is outside its sentence"
            if text[token.start : token.end] != token.text or not token.form:
                return f"{token} is not where it says"
            gap = text[position : token.start]
            if token.start < position or (gap and not gap.isspace()):
                return f"{token} leaves out or repeats what is before it"
            position = token.end
    rest = text[position:]
    return f"{rest!r} is lost" if rest and not rest.isspace() else None


def test_no_character_of_100_000_hostile_strings_is_lost_moved_or_doubled() -> None:
    wrong = [
        (text, problem)
        for text in nasty_strings(100_000)
        if (problem := lost_or_moved(text, segment(text))) is not None
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "damage", "problem"),
    [
        ("a b", lambda s: s[:0], "'a b' is lost"),
        ("a b", lambda s: [*s, *s], "repeats what is before"),
        ("a b", lambda s: [TokenizedSentence("a", 0, 1, s[0].tokens)], "outside its sentence"),
        ("a b", lambda s: [TokenizedSentence("a b", 0, 3, s[0].tokens[1:])], "leaves out"),
        ("a b", lambda s: [TokenizedSentence("b", 0, 3, s[0].tokens)], "not where it says"),
    ],
)
def test_the_check_for_lost_characters_finds_them(
    text: str,
    damage: Callable[[list[TokenizedSentence]], list[TokenizedSentence]],
    problem: str,
) -> None:
    assert problem in (lost_or_moved(text, damage(segment(text))) or "")


PROSE = "He said the wild-type mice (n = 5) can't run, e.g. at 5 p.m. So \"Dr.\" Ho's team left.\n"


LINEAR = 8
"""Four times the text takes 4 times as long in linear time, 16 times in quadratic time."""


def growth(unit: str, size: int) -> float:
    """Measure how much longer four times the text takes; the best of several rounds on a busy
    machine.
    """

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        return timeit.timeit(lambda: segment(text), process_time, number=1)

    small = large = math.inf
    for _ in range(8):
        small, large = min(small, seconds(size)), min(large, seconds(4 * size))
        # Less than 5 ms tells of caches and page faults, not of growth.
        if large <= LINEAR * max(small, 5e-3):
            break
    return large / max(small, 5e-3)


HOSTILE = [
    *("'", '"', "(", "x.) ", "a-", "1,", "A.", "a@", "(a) ", "non-", "\n ", "é", "www."),
    *("/a", "a/", "`", "`a", "-a", "1-", "1/", "5'", "1.", "&a", "<", "~/", "C:\\"),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_the_time_for_hostile_text_grows_linearly(unit: str) -> None:
    assert growth(unit, 40_000) <= LINEAR


def test_quotations_that_are_never_closed_are_split_in_small_blocks() -> None:
    """All of 10,240 characters at once took 70 ms, in which no other thread ran."""
    assert growth("\u201ca ", 2_560) <= LINEAR


def test_time_grows_at_most_slightly_faster_than_the_text() -> None:
    assert growth(PROSE, 250_000) <= LINEAR


def test_growth_tells_quadratic_time_from_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.text.test_tokenize.segment", lambda text: sum(range(len(text) ** 2)))
    assert growth("a", 1_000) > LINEAR


def test_importing_tokens_imports_no_toolkit() -> None:
    toolkits = {"nltk", "numpy", "scipy"}
    code = f"import sys, lpcfg.text.tokenize; print(sorted({toolkits} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
