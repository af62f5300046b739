"""Find where the sentences of a text end, while the text comes in chunks.

An empty line ends a paragraph, and so does a line break before a line that begins like the item of
a list, or before very many blanks. A paragraph is looked at in blocks of at most _BLOCK characters,
the first of which begins with it, and each other where the last sentence of the one before ends.
So an end depends on its block alone, and a text of any length on a window of some 3,000 characters:
sentences are the same wherever the text is cut into chunks. A paragraph that has no end of a
sentence in a whole block is cut between two words, or inside one that is longer.

A sentence is yielded once its block is complete. It is yielded sooner where nothing that may still
come into the block can move its end: see _PLAIN.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import sentencex

from lpcfg.text.abbreviations import (
    AFTER_A_STOP,
    ALWAYS_DOTTED,
    DOTTED,
    DOTTED_BEFORE_NUMBERS,
    any_of,
)
from lpcfg.text.folding import PARAGRAPH_SEPARATOR, fold
from lpcfg.text.languages import Language

_MOST_BLANKS = 1000
"""Blanks behind a line break: with as many, the line is taken for empty whatever follows."""
_MARK = r"[-*•‣◦]|\d{1,3}[.)]"
_PARAGRAPH_BREAK = re.compile(
    rf"\n(?:\ *+\n|\ {{{_MOST_BLANKS}}}|(?=\ *+(?:{_MARK})\ ))|{PARAGRAPH_SEPARATOR}"
)
# The end of a chunk that may turn out to be a paragraph's end.
_PERHAPS_A_BREAK = re.compile(rf"\n\ *+(?:{_MARK}|\d{{1,3}})?\Z")
_SPACE = re.compile(r"\s*+")
# sentencex takes quadratic time on some texts, in which no other thread runs (10,240 characters of
# quotations that are never closed: 70 ms, 2,048: 3 ms), so it never sees more characters than this
# at once. Sentences a parser can answer are shorter: 200 tokens of English have some 1,200.
_BLOCK = 2048
# sentencex swallows the rest of a paragraph after a sentence that begins with `(A)`. With such
# parentheses hidden from it, it finds 99.2 % of the ends of CRAFT's sentences, else 96.2 %.
_ASIDE = re.compile(r"\(([^().!?]*+)\)")
_DAY = re.compile(r"\b\d{1,2}\.\s++\Z")
_CJK_STOP = re.compile(r"[。！？｡]['\")\]]*+\Z")
_STOP = re.compile(r"[.!?…。！？｡؟।॥]['\")\]]*+\s*+\Z")
_MISSING_BLANK = re.compile(rf"[a-z]{{2}}[.!?]{AFTER_A_STOP}")
# What no sentence ends with, though a full stop and a blank follow …
_TITLE = re.compile(
    r"(?:\A|[\s('\"\[])(?:Mr|Mrs|Ms|Mx|Dr|Drs|Prof|St|Mt|Ft|Gen|Sen|Rep|Gov|Lt|Col|Capt|Sgt|Rev|Hon"
    r"|Maj|Adm|Cmdr|Cpl|Pvt|Pres|[Ff]igs?|Eqs?|Refs?|[Pp]p|[Vv]ols?|vs|cf|ca|approx|esp|incl"
    r"|a\.k\.a|[Ee]\.g|[Ii]\.e)\.\s*+\Z"
)
# … and pieces that are no sentence, but the number of an item in a list.
_ITEM = re.compile(r"\s*+\(?(?:\d{1,3}|[A-Za-z])[.)]\s*+")
# What a lower-case word may follow within a sentence.
_ABBREVIATION = re.compile(
    rf"(?:\b(?:{any_of(DOTTED)}|{any_of(ALWAYS_DOTTED)})|\.[A-Za-z]{{1,2}})\.\s*+\Z"
)
_BEFORE_A_NUMBER = re.compile(rf"\b(?:{any_of(DOTTED_BEFORE_NUMBERS)}|{any_of(DOTTED)})\.\s*+\Z")
_HOUR = re.compile(r"[AaPp]\.[Mm]\.\s*+\Z")
_DAY_OR_ZONE = re.compile(
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Eastern|Central|Mountain|Pacific|[A-Z]{2,4})\b"
    r"|January|February|March|April|June|July|August|September|October|November|December|May \d"
)
# Whether an end is one depends on what stands before it and on the next _AHEAD characters, unless
# the block has quotation marks or brackets, which may be closed later, or begins like an item of a
# list, which other items may follow. Nothing else reaches further in sentencex 1.0.32.
_AHEAD = 40
_PLAIN = re.compile(
    r"""
    \s*+ (?= [^\W\d_] ) (?! (?: [a-z] | [ivxlcdm]++ ) \. )
    (?: [^\W_] | [\ \n,;:.?!%$-] | (?<=[^\W_]) ' (?=[^\W_]) )*+
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Window:
    """The part of a text in which sentences are looked for.

    `text` is what came and is still needed, `folded` its folded copy, and `before` counts the
    characters of the text before it.
    """

    def __init__(self, language: Language) -> None:
        self.text = self.folded = ""
        self._language = language
        self.before = 0
        self._held = ""
        """A carriage return at the end of a chunk, until it is known if a line feed follows."""
        self._block = 0
        """The place where the block begins, …"""
        self._done = 0
        """… and the place up to which its sentences were yielded."""
        self._in_gap = False
        """True behind a paragraph's end, until a character comes that is no white space."""

    def add(self, chunk: str) -> None:
        """Take the next characters of the text, and drop what is not needed any more."""
        chunk = self._held + chunk
        self._held = "\r" if chunk.endswith("\r") else ""
        chunk = chunk.removesuffix("\r")
        # A quotation mark that begins a sentence looks at the character before it.
        drop = max(0, self._block - 1)
        self.text = self.text[drop:] + chunk
        self.folded = self.folded[drop:] + fold(chunk)
        self.before += drop
        self._block -= drop
        self._done -= drop

    def finish(self) -> None:
        """Take the end of the text."""
        self.text += self._held
        self.folded += fold(self._held)

    def sentences(self, *, ended: bool) -> Iterator[tuple[int, int]]:
        """Yield the places of the sentences whose ends are known; neither end is a space."""
        while self._enter_paragraph():
            end, gap = self._paragraph(ended)
            while end - self._block > _BLOCK:
                block = self.folded[self._block : self._block + _BLOCK]
                # The last sentence of a block may go on behind it: the next one begins with it.
                ends = _sentence_ends(block, self._language)[:-1] or [
                    block.rfind(" ") + 1 or _BLOCK
                ]
                yield from self._cut(ends)
                self._block += ends[-1]
            block = self.folded[self._block : end]
            if gap is None and not ended:
                yield from self._cut(_early_ends(block, self._language))
                return
            yield from self._cut(_sentence_ends(block, self._language))
            self._block = self._done = end if gap is None else gap.end()
            self._in_gap = gap is not None

    def _enter_paragraph(self) -> bool:
        """Go to where the next sentence may begin. Return False if nothing is left."""
        if self._in_gap and (space := _SPACE.match(self.folded, self._block)):
            self._block = self._done = space.end()
        self._in_gap = self._in_gap and self._block == len(self.folded)
        return self._block < len(self.folded)

    def _paragraph(self, ended: bool) -> tuple[int, re.Match[str] | None]:
        """Find the end of the paragraph, or how far it certainly goes."""
        gap = _PARAGRAPH_BREAK.search(self.folded, self._block)
        if gap is not None:
            return gap.start(), gap
        last = self.folded.rfind("\n", self._block)
        if not ended and last >= 0 and _PERHAPS_A_BREAK.match(self.folded, last):
            return last, None
        return len(self.folded), None

    def _cut(self, ends: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the sentences of the block that end there; what was yielded before is left out."""
        for end in ends:
            sentence = self.folded[self._done : self._block + end]
            body = sentence.strip()
            begin = self._done + len(sentence) - len(sentence.lstrip())
            self._done = max(self._done, self._block + end)
            if body:
                yield begin, begin + len(body)


def sentences_in(text: str, language: Language) -> Iterator[tuple[Window, int, int]]:
    """Yield the sentences of a whole text: `window.text[start:end]` is one."""
    window = Window(language)
    window.add(text)
    window.finish()
    for start, end in window.sentences(ended=True):
        yield window, start, end


def sentences_of(chunks: Iterable[str], language: Language) -> Iterator[tuple[Window, int, int]]:
    """Yield the sentences of a text that comes in chunks, each as soon as its end is known.

    They are those of the whole text. Each stands in the window until the next one is asked for.
    """
    window = Window(language)
    for chunk in chunks:
        window.add(chunk)
        for start, end in window.sentences(ended=False):
            yield window, start, end
    window.finish()
    for start, end in window.sentences(ended=True):
        yield window, start, end


def _early_ends(block: str, language: Language) -> list[int]:
    """List the ends that are known while a block is still growing."""
    plain = _PLAIN.match(block) if language.has_penn_tokens else None  # as was tried in English
    known = plain.end() - _AHEAD if plain else 0
    return [end for end in _sentence_ends(block, language) if end <= known] if known > 0 else []


def _sentence_ends(block: str, language: Language) -> list[int]:
    """List the ends of the sentences of a block, in order; the last one is the block's own end."""
    visible = _ASIDE.sub(r"x\1x", block.replace("\n", " "))
    try:
        boundaries = sentencex.get_sentence_boundaries(language.code, visible)
    except BaseException as problem:
        # sentencex panics on some strings. The class of its panics cannot be imported, and is no
        # Exception.
        if type(problem).__name__ != "PanicException":
            raise
        return [*(match.end() for match in re.finditer("\n", block)), len(block)]
    ends: list[int] = []
    start = 0
    for boundary in boundaries:
        end = boundary["end_index"]
        if _is_end(block, start, end, language):
            ends.append(end)
            start = end
    return [*ends, len(block)]


def _is_end(block: str, start: int, end: int, language: Language) -> bool:
    """Return True if block[start:end], a sentence by sentencex, is a sentence here too."""
    if not start < end < len(block):
        return False
    tail = block[max(start, end - 16) : end]
    if not (tail[-1].isspace() or _CJK_STOP.search(tail) or _MISSING_BLANK.match(block, end - 3)):
        return False
    if _TITLE.search(tail) or _ITEM.fullmatch(tail) or _goes_on(tail, block[end : end + 16]):
        return False
    if language.dotted and _dotted(language.dotted).search(tail):
        return False
    if _DAY.search(tail) and block[end:].startswith(language.months or "\0"):
        return False
    return _STOP.search(tail) is not None


@lru_cache
def _dotted(words: tuple[str, ...]) -> re.Pattern[str]:
    """Match one of these abbreviations at the end of a text."""
    return re.compile(rf"(?:\A|[\s('\"\[])(?:{'|'.join(map(re.escape, words))})\.\s*+\Z")


def _goes_on(tail: str, behind: str) -> bool:
    """Return True if the text behind an abbreviation at the end of the tail belongs to it."""
    return bool(
        (behind[:1].islower() and _ABBREVIATION.search(tail))
        or (behind[:1].isdecimal() and _BEFORE_A_NUMBER.search(tail))
        or (_HOUR.search(tail) and _DAY_OR_ZONE.match(behind))
    )
