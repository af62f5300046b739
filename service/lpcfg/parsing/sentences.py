"""Make sentences of text, of tokens, of tagged tokens and of trees: the one place that does."""

from collections.abc import Iterator, Sequence

from lpcfg.errors import InputError
from lpcfg.parsing.results import Constraint, Sentence
from lpcfg.text.tokenize import Token, segment, tokenize
from lpcfg.trees.tree import Tree


def sentences_in(text: str) -> Iterator[Sentence]:
    """Find the sentences of a text. Offsets count the text's code points."""
    for found in segment(text):
        yield _of_tokens(found.text, found.start, found.end, found.tokens)


def sentence_from_text(text: str) -> Sentence:
    """Read a text as one sentence, whatever stops it contains."""
    return _of_tokens(text, 0, len(text), tokenize(text))


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
