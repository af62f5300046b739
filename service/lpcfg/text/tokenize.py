"""Raw text → sentences → tokens, every one with its place in the text.

    segments        text → sentences with tokens       tokenize      one sentence → tokens
    segments_of     the same for text that comes in chunks
    penn_forms      a caller's own tokens → the words a model knows them by

What holds for every string, lone surrogates included: tokens stand in order and do not overlap,
`token.text == text[token.start:token.end]`, and every character for which `str.isspace` is false
lies in exactly one token. Offsets count code points and are half-open. Time is linear.

Everything is decided on a folded copy of the text (`text/folding.py`); `text/sentences.py` says
where sentences end.

Tokens follow the newer Penn conventions, which CRAFT and GUM share: hyphens and slashes inside
words are tokens (`wild - type`, `mg / ml`) but for prefixes such as `non-` and suffixes such as
`-fold`; `ca n't`, `dog 's`, `can not`; a number and its unit are two (`10 kg`, `10:30 am`); URLs,
addresses, emoji, times, dates, decimals, paths, dotted names and rows of `!` and `?` stay whole.
tests/golden/tokens.txt is the table of these decisions.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from lpcfg.text.abbreviations import (
    AFTER_A_STOP,
    ALWAYS_DOTTED,
    DOTTED,
    DOTTED_BEFORE_NUMBERS,
    any_of,
)
from lpcfg.text.folding import FOLDS, fold
from lpcfg.text.languages import LANGUAGES, Language
from lpcfg.text.sentences import Window, sentences_in, sentences_of


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `text` as the caller wrote it, `form` as Penn trees and models spell it."""

    text: str
    form: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TokenizedSentence:
    """A sentence: `text` as the caller wrote it, from `start` to `end`, and its tokens."""

    text: str
    start: int
    end: int
    tokens: tuple[Token, ...]


def segments(
    text: str, language: str = "english", multiwords: AbstractSet[str] = frozenset()
) -> Iterator[TokenizedSentence]:
    """Yield the sentences of a text in a language, each as soon as it is found.

    An empty line ends a sentence; a single line break is a space. A line that begins with a bullet
    or with a number such as `1.` begins a sentence as well. Token offsets count from the beginning
    of the whole text.
    """
    row = LANGUAGES[language]
    return _tokenized(sentences_in(text, row), row, multiwords)


def segments_of(
    chunks: Iterable[str], language: str = "english", multiwords: AbstractSet[str] = frozenset()
) -> Iterator[TokenizedSentence]:
    """Yield the sentences of a text that comes in chunks, each as soon as its end is known.

    However the text is cut into chunks, they are those of the whole text. Some 3,000 characters
    and a chunk are held in memory.
    """
    row = LANGUAGES[language]
    return _tokenized(sentences_of(chunks, row), row, multiwords)


def _tokenized(
    found: Iterable[tuple[Window, int, int]], language: Language, multiwords: AbstractSet[str]
) -> Iterator[TokenizedSentence]:
    for window, start, end in found:
        before, text = window.before, window.text
        tokens = _tokens(text, window.folded, (start, end), language, before=before)
        if multiwords:
            tokens = _joined(text, tokens, multiwords, before)
        yield TokenizedSentence(text[start:end], before + start, before + end, tokens)


def tokenize(
    text: str,
    language: str = "english",
    multiwords: AbstractSet[str] = frozenset(),
    *,
    most: int | None = None,
) -> tuple[Token, ...]:
    """List the tokens of a text that is one sentence, or is taken for one; at most `most` of
    them.
    """
    found = _tokens(text, fold(text), (0, len(text)), LANGUAGES[language], most=most)
    return _joined(text, found, multiwords) if multiwords else found


# Tokens -------------------------------------------------------------------------------------------

_EMOJI_BASE = "\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_EMOJI = (
    rf"(?:[\U0001f1e6-\U0001f1ff]{{2}}|[{_EMOJI_BASE}](?:\u200d[{_EMOJI_BASE}]|"
    r"[\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f])*+)"
)
# Never part of a word, whatever surrounds it. What is neither here nor a space belongs to words:
# letters, digits and marks of every script, `_`, and code points without a meaning.
_APART = (
    r"\s!-/:-@\[-^`{-~¡-©«¬®-±´¶-¸»¿×÷\u060c\u061b\u061f\u0964\u0965"
    r"\u2012-\u201f\u2022-\u2027\u2030-\u205e\u20a0-\u20cf\u2100-\u214f"
    r"\u2190-\u2bff\u3001-\u303f\uff01-\uff0f\uff1a-\uff20\U0001f000-\U0001faff"
)
_W = rf"[^{_APART}]"
_LETTER = r"[^\W\d_]"

# Measured on the training trees of CRAFT and GUM: those that stay with their word more often than
# not, and, with the like of them, what the guidelines for newer Penn treebanks list.
_PREFIXES = (
    "ante anti arch auto bi co counter cross de di e(?=-mail) ex extra hetero hyper hypo infra "
    "inter intra macro mal mega micro mid mini multi non over para peri post pre pro pseudo quasi "
    "re semi sub super supra tri ultra uni vice x(?=-ray)"
)
_SUFFIXES = "esque fold wise"
# A number and one of these behind it are two tokens.
_UNITS = (
    "kg mg µg μg ng lb lbs oz km cm mm nm µm μm mi ft yd yds ml mL µl μl dl cl mph kph rpm Hz kHz "
    "MHz GHz kB KB MB GB TB kb mb gb tb kbps Mbps Gbps kcal kJ kW MW GW kWh mV mA mAh dB dpi px hr "
    "hrs min mins sec secs ms yr yrs bp kDa mM µM μM nM am pm AM PM a.m. p.m. A.M. P.M. bn tn mln"
)
# What file names end in, so that `docker-compose.yml` is one token.
_EXTENSIONS = (
    "py js ts tsx jsx css html htm json yaml yml toml txt md pdf csv tsv xml sh bat exe zip tar gz "
    "log ini cfg conf env doc docx xls xlsx ppt pptx png jpg jpeg gif svg mp3 mp4 java cpp hpp rs "
    "go rb php sql ipynb lock bak mrg"
)
_DOMAINS = "com edu gov info io net org co ly be me us uk de fr eu ai dev app tv ca au gg"
# Words in speech that lose their last letter.
_CLIPPED = (
    "goin doin nothin somethin anythin comin lookin talkin tryin gettin mornin workin runnin livin "
    "playin thinkin feelin makin takin sayin sittin waitin ol lil an"
)


_PREFIX = "|".join(_PREFIXES.split())


_SENTENCE_END = r"[\"')\]}]*+\s*+\Z"
_URL_REST = r"""[^\s<>"`]* [^\s<>"'`.,;:!?)\]}]"""
_SUFFIX = f"(?: -(?i:{any_of(_SUFFIXES)}) (?!{_W}) )?"
_FILE_END = rf"\.(?:{any_of(_EXTENSIONS)}) (?!{_W}|\.\w)"
_STEP = r"\.?[\w+-](?:[\w.+-]{0,62}[\w+-])?"
_NUMBER = r"\.?\d++ (?: ,(?=\d{3}(?!\d)) \d++ | \.\d++ )*+"
_TOKEN = re.compile(
    rf"""
    # Most words
      {_LETTER}++ (?=[ ,]|\Z)
    # Written as one though it holds marks that else stand apart: code, addresses, paths …
    | (?<!`) ` [^`\s]{{1,200}} ` (?!`)
    | (?: https?:// | ftp:// | www\. | (?:doi:)? 10\.\d{{4,9}}/ ) {_URL_REST}
    | (?: [A-Za-z0-9-]{{1,63}}\. ){{1,8}} (?:{any_of(_DOMAINS)})/ (?: {_URL_REST} )?
    | [\w.+-]{{1,64}}+ @ [\w-]{{1,63}} (?: \.[\w-]{{1,63}} ){{1,8}}
    | [@\#] {_LETTER} \w*+ | \#\d++ (?!{_W}) | (?<!\S) /?[ru]/\w{{2,30}}+
    | (?<![^\s"'(\[=]) (?: (?:~|\.\.?)(?:/{_STEP}){{1,16}} | (?:/{_STEP}){{2,16}} ) /?
    | (?<!\S) [A-Za-z]:\\ (?: [^\s"'<>|?*,;)]{{0,256}} [^\s"'<>|?*,;).:!] )?
    | (?: [\w.+-]{{1,64}}/ ){{1,16}} \w (?:[\w.+-]{{0,62}}\w)? {_FILE_END}
    | \w{{1,64}} (?: [-.]\w{{1,64}} ){{1,8}} {_FILE_END}
    | (?<!\S) \. (?: NET | gitignore | dockerignore | bashrc | {any_of(_EXTENSIONS)} ) (?!{_W})
    # … emoticons and emoji …
    | (?<!\S)
      (?: [:;] [-']{{0,2}} [()DPpOo3/\\|*\[\]] | = [-']? [()DPp] | </?3 | \^[_.-]?\^ | -_+-
        | [oO0]_+[oO0] | >[_.]< | ¯\\_\(ツ\)_/¯ )
      (?![^\s.,!?)])
    | {_EMOJI}
    # … money, degrees, dates, times and measures.
    | [A-Z]{{1,3}}\$
    | °[CF] (?!{_W})
    | \d{{4}}-\d\d-\d\d (?: T\d\d:\d\d (?: :\d\d (?:\.\d{{1,9}})? )? (?: Z | [+-]\d\d:?\d\d )? )?
      (?!{_W}|-)
    | \d{{1,2}}-\d{{1,2}}-\d{{4}} (?!{_W}|-)
    | \d{{1,2}} : [0-5]\d (?: :[0-5]\d )? (?: \.\d{{1,9}} )?
      (?! ,\d | (?! [AaPp]\.?[Mm](?!{_W}) ) {_W} )
    | \d{{1,2}} / \d{{1,2}} / (?: \d{{4}} | \d\d ) (?!/|{_W})
    | \d{{1,2}} / \d{{1,2}} (?!/|{_W}|\.\d)
    | \+? (?: \d{{1,2}}- )? \d{{3}}-\d{{3}}-\d{{4}} (?!{_W}|-)
    | \d{{3}}- (?!\d\d00) \d{{4}} (?!{_W}|-)
    | \+\d{{6,15}} (?!{_W})
    | \d{{1,2}} ['′] \d{{1,2}} (?: "|''|″|′′ ) (?!{_W}) | \d ['′] \d{{1,2}} (?!{_W})
    | \A \d{{1,3}} \. (?=\ )
    # Words with a full stop or a slash of their own
    | (?=[A-Za-z]{{1,6}}+\.)
      (?: (?: [A-Za-z]{{1,2}}\. ){{2,}}+ (?!{_W})
        | (?: {any_of(ALWAYS_DOTTED)} ) \. (?!{_W})
        | (?: Mr|Mrs|Ms|Dr|Prof ) \. (?=[A-Z])
        | (?: {any_of(DOTTED)} | [A-Za-z] ) \. (?!{_W}|{_SENTENCE_END})
        | (?: {any_of(DOTTED_BEFORE_NUMBERS)} ) \. (?=\s?\d) )
    | (?<!/) (?i: n/a | w/o | b/c | c/o | s/he ) (?!{_W}|/) | (?<![^\s(]) [Ww]/ (?! [vw](?!{_W}) )
    # Numbers
    | \d++ (?: \.\d++ )?+ [eE] [-+]? \d++ (?!{_W})
    | {_NUMBER} (?: (?!{_W}) {_SUFFIX} | (?= (?: {any_of(_UNITS)} | (?<=\d\d)g ) (?!{_W}) ) )
    | (?<=[$£€¥]) {_NUMBER} (?=[kKmMbB](?!{_W}))
    # Words
    | [A-J]\# (?!{_W})
    | (?i: {any_of(_CLIPPED)} ) ' (?=\s)
    | (?i: uh | um | mm | hm | nuh | mhm ) - (?i: huh | hum | uh | mm | hm ) (?!{_W})
    | (?: (?=\w{{1,7}}+-[^\W_]) (?i:{_PREFIX}) - )*+
      {_W}++ (?: (?<=\d),(?=\d{{3}}(?!\d)) {_W}++
               | \. (?! (?<=[a-z]{{2}}\.) {AFTER_A_STOP} ) {_W}++
               | (?<={_LETTER})'(?={_LETTER}) {_W}++
               | (?<=[A-Z])&(?=[A-Z]) {_W}++ )*+
      (?: \++ (?! {_W} | /[-+−–] ) | \(\) | {_SUFFIX} )
    # Marks
    | ' (?i: s|m|d|re|ve|ll ) (?!'|{_W})
    | (?<!{_W}) '[Nn]'? (?!'|{_W})
    | (?<!{_W}) ' (?i: em|til|cause|bout|round|tis|twas|t|\d\ds? ) (?!'|{_W})
    | & (?: [a-z]{{2,6}} | \#\d{{1,6}} ) ;
    | [<>!]= | <?--?> | => | <--? (?!\d) | && | \|\|
    | '' | `{{2,}}+ | \.{{2,}}+ | -{{2,}}+ | \*++ | =++ | ~++ | \#++ | [!?]++
    | \S
    """,
    re.VERBOSE,
)
_CLITIC = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll))\Z", re.IGNORECASE)
# Words written together, and where they are cut.
_FUSED = {
    "cannot": 3,
    "gonna": 3,
    "gotta": 3,
    "wanna": 3,
    "gimme": 3,
    "lemme": 3,
    "'tis": 2,
    "'twas": 2,
}
# Words written without their apostrophe, and where it is left out.
_BARE = {
    **dict.fromkeys(("dont", "cant", "wont", "isnt", "arent", "aint"), -2),
    **dict.fromkeys(("didnt", "doesnt", "wasnt", "werent", "couldnt", "wouldnt", "shouldnt"), -2),
    **dict.fromkeys(("havent", "hasnt", "hadnt", "mustnt"), -2),
    **dict.fromkeys(("ive", "youve", "weve", "theyve", "youre", "theyre"), -2),
    **dict.fromkeys(("youll", "theyll"), -2),
    **dict.fromkeys(("im", "thats", "whats", "theres", "wheres", "whos", "hes", "shes"), -1),
}


def _tokens(
    text: str,
    folded: str,
    place: tuple[int, int],
    language: Language,
    *,
    before: int = 0,
    most: int | None = None,
) -> tuple[Token, ...]:
    """Return the tokens at a place of a text, by the conventions of its language.

    `before` is the place of the text in the caller's.
    """
    start, end = place
    sentence = folded[start:end].replace("\n", " ")
    spans = _spans(sentence) if language.has_penn_tokens else _plain_spans(sentence, language)
    found = islice(spans, most)
    return _placed(
        text, folded, ((start + left, start + right, form) for left, right, form in found), before
    )


def _placed(
    text: str, folded: str, found: Iterable[tuple[int, int, str | None]], before: int = 0
) -> tuple[Token, ...]:
    """Return the tokens at these places, with their forms."""
    spans = list(found)
    forms = _forms(
        (form or text[left:right] for left, right, form in spans),
        (_turn(folded, left, right) for left, right, _ in spans),
    )
    return tuple(
        Token(text[left:right], form, before + left, before + right)
        for (left, right, _), form in zip(spans, forms, strict=True)
    )


def _spans(sentence: str) -> Iterator[tuple[int, int, str | None]]:
    """Find where the tokens of a folded sentence without line breaks begin and end.

    Each comes with the word that it stands for, if its letters alone do not show it.
    """
    for match in _TOKEN.finditer(sentence):
        start, end = match.span()
        word = match[0]
        bare = _bare(word)
        if bare:
            yield start, end + bare, None
            yield end + bare, end, _with_apostrophe(word[bare:])
            continue
        cut = _cut(word)
        if cut:
            # A word in front of two of them, `you'd've`, is cut twice; none has three.
            first = _cut(word[:cut])
            if first:
                yield start, start + first, None
            yield start + first, start + cut, None
        yield start + cut, end, None


def _bare(word: str) -> int:
    """Find the place of a word's missing apostrophe, counted from its end; 0 if none is missing.

    IM is not `I'm`, but DONT is `don't`.
    """
    return _BARE.get(word.lower(), 0) if len(word) > 2 or not word.isupper() else 0


def _with_apostrophe(ending: str) -> str:
    return f"{ending[0]}'{ending[1]}" if ending.lower() == "nt" else f"'{ending}"


def _cut(word: str) -> int:
    """Count the first characters of a word that are a token of their own, if any."""
    if "'" in word:
        clitic = _CLITIC.search(word)
        if clitic:
            return clitic.start()
    return _FUSED.get(word.lower(), 0)


# Other languages ----------------------------------------------------------------------------------


def _plain_spans(sentence: str, language: Language) -> Iterator[tuple[int, int, None]]:
    """Find the tokens of a folded sentence of a language without Penn conventions."""
    for match in _plain_token(language.elisions).finditer(sentence):
        yield (*match.span(), None)


@lru_cache
def _plain_token(elisions: tuple[str, ...]) -> re.Pattern[str]:
    elided = f"(?i:{'|'.join(elisions)}) ' (?={_W}) |" if elisions else ""
    return re.compile(
        rf"""
          (?: https?:// | ftp:// | www\. ) {_URL_REST}
        | [\w.+-]{{1,64}}+ @ [\w-]{{1,63}} (?: \.[\w-]{{1,63}} ){{1,8}}
        | [@\#] {_LETTER} \w*+
        | {_EMOJI}
        | \d++ (?: [.,:]\d++ )*+ (?!{_W})
        | {elided} {_W}++ (?: [-'.·]{_W}++ )*+
        | '' | `{{2,}}+ | \.{{2,}}+ | -{{2,}}+ | [!?]++ | \S
        """,
        re.VERBOSE,
    )


def _joined(
    text: str, tokens: Sequence[Token], multiwords: AbstractSet[str], before: int = 0
) -> tuple[Token, ...]:
    """Join tokens with blanks between them that a treebank writes as one word: `por ciento`.

    `before` is the place of the text in the caller's.
    """
    longest = max(word.count("_") for word in multiwords) + 1
    found: list[Token] = []
    k = 0
    while k < len(tokens):
        size = 1
        for wanted in range(min(longest, len(tokens) - k), 1, -1):
            part = tokens[k : k + wanted]
            blanks = all(
                b.start - a.end == 1 and text[a.end - before] == " " for a, b in pairwise(part)
            )
            if blanks and "_".join(token.form for token in part) in multiwords:
                size = wanted
                break
        part = tokens[k : k + size]
        form = "_".join(token.form for token in part)
        start, end = part[0].start, part[-1].end
        found.append(Token(text[start - before : end - before], form, start, end))
        k += size
    return tuple(found)


# Forms --------------------------------------------------------------------------------------------

_FORMS = {
    "“": "``",
    "„": "``",
    "«": "``",
    "”": "''",
    "‟": "''",
    "»": "''",
    "‘": "`",
    "‚": "`",
    "…": "...",
    "—": "--",
    "―": "--",
}
_FORM_FOLDS: dict[int, str | None] = {
    **{code: fold for code, fold in FOLDS.items() if not fold.isspace()},
    **dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff")),
    ord("("): "-LRB-",
    ord(")"): "-RRB-",
    ord("{"): "-LCB-",
    ord("}"): "-RCB-",
}
# Rows of marks, code and characters that HTML spells out, and what each of them stands for.
_ROW = re.compile(r"(?:[!?]{2,}+|\.{2,}+|-{2,}+)\Z")
_CODE = re.compile(r"`([^`\s]+)`\Z")
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'"}
_QUOTES = frozenset({"``", "''"})
_STRAIGHT = frozenset({'"', "'"})
# The tags of quotation marks, and if they open a quotation.
_TURNS = {"``": True, "''": False}
_BEFORE_OPENING = frozenset("([{<-–—/\"'`")


def penn_forms(words: Sequence[str], tags: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the treebank's forms of tokens that come without their text.

    The tag of a straight quotation mark says if it opens or closes; without tags, marks open and
    close in turn. Words that are in Penn form already stay as they are.
    """
    turns = (None for _ in words) if tags is None else (_TURNS.get(tag) for tag in tags)
    return _forms(words, turns)


def _forms(words: Iterable[str], turns: Iterable[bool | None]) -> tuple[str, ...]:
    """Return the forms of the words of one sentence; `turns` says of each if it opens a quotation,
    and is looked at where there is a straight mark.
    """
    forms = tuple(map(_form, words))
    return forms if _STRAIGHT.isdisjoint(forms) else tuple(_turned(forms, turns))


def _turned(forms: Iterable[str], turns: Iterable[bool | None]) -> Iterator[str]:
    """Yield the forms with straight quotation marks turned the way they open or close."""
    is_open = False
    for form, turn in zip(forms, turns, strict=True):
        if form == '"':
            form = "``" if (not is_open if turn is None else turn) else "''"
        elif form == "'" and turn:
            form = "`"
        if form in _QUOTES:
            is_open = form == "``"
        yield form


LONGEST_KEPT = 64
"""Letters of the longest word that is remembered: one of a million takes megabytes, and comes
once."""


def _form(word: str) -> str:
    return _known_form(word) if len(word) <= LONGEST_KEPT else _form_of(word)


def _form_of(word: str) -> str:
    """Return the form of a word that is no quotation mark: folded, composed, brackets spelled
    out.
    """
    if word.isascii() and word.isalnum():
        return word
    if _ROW.match(word):
        return "?" if "?" in word else {"!": "!", ".": "...", "-": "--"}[word[0]]
    code = _CODE.match(word)
    if code:
        return _form(code[1])
    word = _ENTITIES.get(word, word)
    form = unicodedata.normalize("NFC", _FORMS.get(word) or word.translate(_FORM_FOLDS))
    return form or word


_known_form = lru_cache(maxsize=1 << 14)(_form_of)


def _turn(folded: str, start: int, end: int) -> bool | None:
    """Decide if folded[start:end] may be an opening quotation mark, by its surroundings.

    Return None if this is unclear.
    """
    blank_before = start == 0 or folded[start - 1].isspace() or folded[start - 1] in _BEFORE_OPENING
    blank_after = end == len(folded) or folded[end].isspace()
    return blank_before if blank_before != blank_after else None
