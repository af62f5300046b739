"""List languages as rows of a table: how their text is cut into tokens, and which words they have.

`neutral` is the row of every other language. It knows no abbreviations, no clitics and no endings:
words are what stands between blanks and marks, hyphens and apostrophes inside included.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LIKELY = 0.12
"""The share of a language's function words among the words of a text that is likely in it.

Of the words of craft/dev, gum/dev, masc/dev and genia/dev, 20 to 26 % are those of English, and at
most 0.3 % those of another language of the table.
"""
ENOUGH = 200
"""Words without which no language is recognised."""


@dataclass(frozen=True)
class Language:
    """A row: its name, what it has of its own, and its most frequent function words.

    `rules` names the signatures and spellings of its words (`lpcfg.grammar`), `has_penn_tokens`
    says that text is cut by the Penn conventions of English, and `elisions` are words that end in
    an apostrophe and are tokens of their own. `code` is that of ISO 639, by which sentences are
    found; no sentence ends with a word of `dotted` and its full stop, nor with `3.` before a month.
    """

    name: str
    code: str = "en"
    rules: str = "neutral"
    has_penn_tokens: bool = False
    elisions: tuple[str, ...] = ()
    dotted: tuple[str, ...] = ()
    months: tuple[str, ...] = ()
    function_words: frozenset[str] = frozenset()


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LANGUAGES: Mapping[str, Language] = {
    row.name: row
    for row in (
        Language(
            "english",
            rules="english",
            has_penn_tokens=True,
            function_words=_words("the of and to in that is was with for it as by are this from"),
        ),
        Language(
            "spanish",
            code="es",
            dotted=_listed("Sr Sra Srta Sres Dr Dra D Dña Ud Uds pág núm"),
            function_words=_words("el la los las de del que y en un una se por con para no su al"),
        ),
        Language(
            "german",
            code="de",
            dotted=("z. B", "d. h", *_listed("Hr Hrn Fr Dr Prof Nr Str bzw ca vgl")),
            months=_listed(
                "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
            ),
            function_words=_words("der die das und den dem des ein eine nicht ist zu mit sich auf"),
        ),
        Language(
            "french",
            code="fr",
            dotted=_listed("M MM Mme Mmes Mlle Dr Pr av p n cf env"),
            elisions=_listed("l d j m t s c n qu jusqu lorsqu puisqu"),
            function_words=_words("le la les de des du et un une est que dans qui pour pas au sur"),
        ),
        Language("neutral"),
    )
}


def shares(words: Iterable[str]) -> tuple[dict[str, float], int]:
    """Compute the share of each language's function words, and count the words with letters."""
    lower = [word.lower() for word in words if any(map(str.isalpha, word))]
    most = max(len(lower), 1)
    return {
        name: sum(word in row.function_words for word in lower) / most
        for name, row in LANGUAGES.items()
        if row.function_words
    }, len(lower)


def likely(words: Iterable[str]) -> str | None:
    """Guess the language of words: `neutral` if it is none of the table, None if there are too
    few.
    """
    found, count = shares(words)
    if count < ENOUGH:
        return None
    best = max(found, key=lambda name: found[name])
    return best if found[best] >= LIKELY else "neutral"


def warning(words: Iterable[str], language: str) -> str | None:
    """Say that words look foreign to a language, and what to do; None if they do not."""
    found = likely(words)
    if found is None or found == language or not LANGUAGES[language].function_words:
        return None
    seen = "no language that has rules here" if found == "neutral" else found
    return f"the words look like {seen}, not {language}: train with --language {found}"
