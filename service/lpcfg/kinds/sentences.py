"""Make sentences of text, of tokens, of tagged tokens and of trees: the one place that does."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lpcfg.base.errors import InputError
from lpcfg.text.tokenize import Token, TokenizedSentence, segments, segments_of, tokenize
from lpcfg.trees.tree import Tree


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constituent the analysis must have: over [start, end), with this label if given.

    `start` and `end` count tokens: `Constraint(1, 3, "NP")` wants the second and third to be an NP.
    With `forbid`, the analysis must not have it.
    """

    start: int
    end: int
    label: str | None = None
    forbid: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence to analyse: the caller's own tokens, with tags and constraints the caller knows.

    `tags` has a tag or None for each token; `constraints` say what the tree must contain, also as
    plain (start, end) or (start, end, label). `forms` are the tokens as the treebanks write them
    (brackets, quotes); `offsets` are the tokens' places in `text`, which begins at `start` of what
    the caller sent.

    >>> sentence = lpcfg.Sentence(["Time", "flies", "."], tags=["NN", "VBZ", None])
    >>> [token.tag for token in parser.parse([sentence])[0].tokens]
    ['NN', 'VBZ', '.']
    """

    tokens: Sequence[str]
    tags: Sequence[str | None] | None = None
    constraints: Sequence[Constraint] = ()
    id: str | int | None = None
    text: str | None = None
    start: int | None = None
    end: int | None = None
    forms: tuple[str, ...] | None = None
    offsets: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        """Keep sequences as tuples, so that sentences can be compared and cached."""
        tokens = self.tokens
        if isinstance(tokens, str) or not isinstance(tokens, Sequence):
            raise InputError(
                f"expected tokens as a list of strings, got {tokens!r}: split it into tokens, or "
                "give text to `parse` as it is",
                pointer="/tokens",
            )
        object.__setattr__(self, "tokens", tuple(tokens))
        object.__setattr__(self, "tags", None if self.tags is None else tuple(self.tags))
        object.__setattr__(self, "constraints", tuple(map(constraint_of, self.constraints)))


def constraint_of(given: object) -> Constraint:
    """Read (start, end) or (start, end, label) as a constraint."""
    if isinstance(given, Constraint):
        return given
    if isinstance(given, tuple | list) and len(given) in (2, 3):
        start, end, label = (*given, None)[:3]
        if type(start) is type(end) is int and (label is None or isinstance(label, str)):
            return Constraint(start, end, label)
    raise InputError(
        f"expected constraints as (start, end) or (start, end, label), got {given!r}: count tokens "
        'from 0, as in (0, 2, "NP")',
        pointer="/constraints",
    )


_WORD = re.compile(r"[^ \t\n\r\f\v]++( [^ \t\n\r\f\v]++)*+")
OneSentence = str | Sequence[str] | Sentence
"""A sentence as text, as tokens, or with what else is known of it."""
Given = str | Sentence | Iterable[OneSentence]
"""A text of any number of sentences, or sentences one by one."""


@dataclass(frozen=True)
class Segmenter:
    """Cuts text into sentences and words as the treebanks of a language do.

    `multiwords` are words of several parts, with `_` between these.
    """

    language: str = "english"
    multiwords: AbstractSet[str] = frozenset()

    def sentences(self, text: str) -> Iterator[Sentence]:
        """Find the sentences of a text. Offsets count the text's code points."""
        return map(_of_segment, segments(text, self.language, self.multiwords))

    def sentences_of_chunks(self, chunks: Iterable[str]) -> Iterator[Sentence]:
        """Find the sentences of a text that comes in chunks, each as soon as its end is known."""
        return map(_of_segment, segments_of(chunks, self.language, self.multiwords))

    def sentence(self, text: str, most_tokens: int | None = None) -> Sentence:
        """Read a text as one sentence, whatever stops it contains; its first tokens, if limited."""
        tokens = tokenize(text, self.language, self.multiwords, most=most_tokens)
        return _of_tokens(text, 0, len(text), tokens)

    def sentences_of(self, given: Given) -> list[Sentence]:
        """Make sentences of whatever a parser accepts."""
        if isinstance(given, str):
            return list(self.sentences(given))
        if isinstance(given, Sentence):
            return [self.sentence_of(given)]
        if isinstance(given, bytes | Mapping | AbstractSet) or not isinstance(given, Iterable):
            raise InputError(
                "expected text as a string, or a list of sentences (each a string, a list of "
                f"tokens or an lpcfg.Sentence), got {_described(given)}: give one of these"
            )
        return [self.sentence_of(one, f" as item {number}") for number, one in enumerate(given)]

    def sentence_of(self, given: OneSentence, where: str = "") -> Sentence:
        """Make one sentence of text, of tokens or of a Sentence; `where` is told in errors."""
        if isinstance(given, str):
            return self.sentence(given)
        if isinstance(given, Sentence):
            return _checked(given, where)
        if isinstance(given, list | tuple):
            return _checked(sentence_from_tokens(given), where)
        raise InputError(
            "expected a sentence (a string, a list of tokens or an lpcfg.Sentence), got "
            f"{_described(given)}{where}: give one of these"
        )


ENGLISH = Segmenter()


def check_tags(sentence: Sentence, known: Collection[str]) -> None:
    """Raise InputError for a tag that the model does not have."""
    for number, tag in enumerate(sentence.tags or ()):
        if tag is not None and tag not in known:
            raise InputError(
                f"expected null or a tag of the model's, got {tag!r}: use one of {' '.join(known)}",
                pointer=f"/tags/{number}",
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


def _of_segment(found: TokenizedSentence) -> Sentence:
    return _of_tokens(found.text, found.start, found.end, found.tokens)


def _of_tokens(text: str, start: int, end: int, tokens: Sequence[Token]) -> Sentence:
    return Sentence(
        tokens=tuple(token.text for token in tokens),
        text=text,
        start=start,
        end=end,
        forms=tuple(token.form for token in tokens),
        offsets=tuple((token.start, token.end) for token in tokens),
    )
