"""Make sentences of text, of tokens, of tagged tokens and of trees: the one place that does."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from lpcfg.errors import InputError
from lpcfg.grammar.lexicon import Lexicon
from lpcfg.parsing.results import Constraint, Sentence
from lpcfg.text.languages import LANGUAGES
from lpcfg.text.tokenize import Token, TokenizedSentence, segments, segments_of, tokenize
from lpcfg.trees.tree import Tree

_WORD = re.compile(r"[^ \t\n\r\f\v]++( [^ \t\n\r\f\v]++)*+")
OneSentence = str | Sequence[str] | Sentence
"""A sentence as text, as tokens, or with what else is known of it."""
Given = str | Sentence | Iterable[OneSentence]
"""A text of any number of sentences, or sentences one by one."""


def sentences_of(given: Given) -> list[Sentence]:
    """Make sentences of whatever `Parser.parse` accepts."""
    if isinstance(given, str):
        return list(sentences_in(given))
    if isinstance(given, Sentence):
        return [sentence_of(given)]
    if isinstance(given, bytes | Mapping | AbstractSet) or not isinstance(given, Iterable):
        raise InputError(
            "expected text as a string, or a list of sentences (each a string, a list of tokens "
            f"or an lpcfg.Sentence), got {_described(given)}: give one of these"
        )
    return [sentence_of(one, f" as item {number}") for number, one in enumerate(given)]


def sentence_of(given: OneSentence, where: str = "") -> Sentence:
    """Make one sentence of text, of tokens or of a Sentence; `where` is told in errors."""
    if isinstance(given, str):
        return sentence_from_text(given)
    if isinstance(given, Sentence):
        return _checked(given, where)
    if isinstance(given, list | tuple):
        return _checked(sentence_from_tokens(given), where)
    raise InputError(
        "expected a sentence (a string, a list of tokens or an lpcfg.Sentence), got "
        f"{_described(given)}{where}: give one of these"
    )


def _checked(sentence: Sentence, where: str) -> Sentence:
    """Raise InputError for tokens that brackets cannot hold."""
    for number, token in enumerate(sentence.tokens):
        if not isinstance(token, str) or not _WORD.fullmatch(token):
            raise InputError(
                "expected tokens that are strings, without white space but single blanks inside, "
                f"got {_described(token)} as token {number}{where}: correct it or leave it out",
                pointer=f"/tokens/{number}",
            )
    return sentence


def _described(value: object) -> str:
    """Name a value's type, and show what is short enough to be shown."""
    shown = repr(value)
    kind = type(value).__name__
    return f"{kind} {shown}" if len(shown) <= 40 else kind


def sentences_in(text: str) -> Iterator[Sentence]:
    """Find the sentences of a text. Offsets count the text's code points."""
    return map(_of_segment, segments(text))


def sentences_of_chunks(chunks: Iterable[str]) -> Iterator[Sentence]:
    """Find the sentences of a text that comes in chunks, each as soon as its end is known."""
    return map(_of_segment, segments_of(chunks))


def _of_segment(found: TokenizedSentence) -> Sentence:
    return _of_tokens(found.text, found.start, found.end, found.tokens)


def in_words_of(lexicon: Lexicon, sentence: Sentence) -> Sentence:
    """Cut a sentence that came as text into the words of a model's language.

    Text is first cut as English is. What a caller says of tokens by their number stands.
    """
    has_penn_tokens = LANGUAGES[lexicon.language].has_penn_tokens
    if has_penn_tokens or sentence.text is None or sentence.offsets is None:
        return sentence
    if sentence.constraints or sentence.tags is not None:
        return sentence
    start = sentence.start or 0
    found = tokenize(sentence.text, lexicon.language, lexicon.multiwords)
    return replace(
        sentence,
        tokens=tuple(token.text for token in found),
        forms=tuple(token.form for token in found),
        offsets=tuple((start + token.start, start + token.end) for token in found),
    )


def sentence_from_text(text: str, most_tokens: int | None = None) -> Sentence:
    """Read a text as one sentence, whatever stops it contains; its first tokens, if limited."""
    return _of_tokens(text, 0, len(text), tokenize(text, most=most_tokens))


def sentence_from_tokens(
    tokens: Sequence[str],
    tags: Sequence[str | None] | None = None,
    constraints: Sequence[Constraint] = (),
    id: str | int | None = None,
) -> Sentence:
    """Take tokens as they are given, with what the caller knows of them."""
    return Sentence(
        tokens=tuple(tokens),
        tags=None if tags is None else tuple(tags),
        constraints=tuple(constraints),
        id=id,
    )


def sentence_from_tagged(line: str, number: int) -> Sentence:
    """Read `word/TAG word/TAG …`. Errors name the line by its number."""
    tokens, tags = [], []
    for item in line.split():
        token, slash, tag = item.rpartition("/")
        if not (token and slash and tag):
            raise InputError(
                f"expected word/TAG in line {number}, got `{item}`: give every word its tag, or "
                "use --input tokens"
            )
        tokens.append(token)
        tags.append(tag)
    return sentence_from_tokens(tokens, tags)


def sentence_from_tree(tree: Tree, *, tagged: bool = False) -> Sentence:
    """Take the words of a tree, and its tags where they are wanted."""
    leaves = tree.leaves()
    tags = [leaf.label for leaf in leaves] if tagged else None
    return sentence_from_tokens([leaf.word or "" for leaf in leaves], tags)


def _of_tokens(text: str, start: int, end: int, tokens: Sequence[Token]) -> Sentence:
    return Sentence(
        tokens=tuple(token.text for token in tokens),
        text=text,
        start=start,
        end=end,
        forms=tuple(token.form for token in tokens),
        offsets=tuple((token.start, token.end) for token in tokens),
    )
