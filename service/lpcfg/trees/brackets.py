"""Read and write Penn brackets, and say what is wrong with text that is not well-formed trees.

Words are kept as they stand in the brackets: the token `(` is the word `-LRB-` here, and
`ptb_escape` and `ptb_unescape` lead from one to the other. Only ASCII white space separates what
stands in brackets; a no-break space is part of its word. A leaf has one word even where the
treebank put a space into it (CRAFT has five such: `(NN Xpd TTD)` is one token); any white space
inside is read as one space.
"""

import gc
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from lpcfg.errors import InputError, TreebankError
from lpcfg.text.files import Source, texts
from lpcfg.trees.tree import Tree, as_brackets

MAX_DEPTH = 500


# Reading ------------------------------------------------------------------------------------------

_SPACES = " \t\n\r\f\v"
# An opening bracket with its label, for a leaf also its word (first piece, all others) and all ')'
# that follow; or, last, any character that is out of place. A text cut before any '(' falls into
# the same matches.
_OPENING = re.compile(
    rf"\([{_SPACES}]*+([^{_SPACES}()]*+)[{_SPACES}]*+"
    rf"(?:([^{_SPACES}()]++)((?:[{_SPACES}]++[^{_SPACES}()]++)*+)[{_SPACES}]*+(\)[{_SPACES})]*+))?"
    rf"|([^{_SPACES}])"
)
_TOKEN = re.compile(rf"[()]|[^{_SPACES}()]++")
_SPACE = re.compile(rf"[{_SPACES}]+")
# Matches of this many characters are held at a time: enough that pausing the collector pays.
_CHUNK = 1 << 18
_BOM = "\ufeff"


def read(source: Source | Sequence[Source], *, max_depth: int = MAX_DEPTH) -> Iterator[Tree]:
    """Every tree of a file, a folder, '-' (standard input), an open stream, or a list of those.

    A folder is read recursively, its files in sorted order, hidden ones left out. Text is UTF-8,
    with or without a byte order mark, and may be compressed by gzip. Files are opened one after
    another as the trees are consumed. Raises TreebankError where the text is not well-formed
    trees, nested in at most max_depth brackets, and InputError where there is nothing to read.
    """
    sources: Sequence[Source]
    sources = [source] if isinstance(source, str) or not isinstance(source, Sequence) else source
    for one in sources:
        for name, text in texts(one):
            yield from read_string(text, source=name, max_depth=max_depth)


def read_string(
    text: str, *, source: str = "<string>", max_depth: int = MAX_DEPTH
) -> Iterator[Tree]:
    """Every tree of a text; source names it in errors."""
    if max_depth < 1:
        raise InputError(f"expected a depth limit of at least 1, got {max_depth}: raise it")
    text = text.removeprefix(_BOM)
    builder = _Builder(max_depth)
    empty = True
    for chunk in _chunks(text):
        sound = builder.feed(chunk)
        trees = builder.take()
        empty = empty and not trees
        yield from trees
        if not sound:
            raise _diagnosis(text, source, max_depth)
    if empty or builder.is_open:
        raise _diagnosis(text, source, max_depth)


def parse_tree(text: str, *, source: str = "<string>", max_depth: int = MAX_DEPTH) -> Tree:
    """The one tree of a text that holds exactly one."""
    trees = read_string(text, source=source, max_depth=max_depth)
    tree = next(trees)
    if next(trees, None) is not None:
        text = text.removeprefix(_BOM)
        problem = "expected one tree, got a second: give each tree by itself"
        raise _error(problem, text, _second_tree(text), source)
    return tree


def _chunks(text: str) -> Iterator[str]:
    """The text in pieces of about _CHUNK characters, cut before a '('."""
    cuts = [0]
    while (cut := text.find("(", cuts[-1] + _CHUNK)) >= 0:
        cuts.append(cut)
    cuts.append(len(text))
    for start, end in pairwise(cuts):
        yield text[start:end]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector off: building many trees is up to four times as fast without it.

    None of them is garbage, yet it visits them all again and again as their number grows.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class _Builder:
    """Grows trees from chunks of text; knows that a text is malformed, but not where or why.

    labels are those of the open brackets; families[0] holds the finished trees, and families[d]
    the finished children of the d-th open bracket.
    """

    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.labels: list[str] = []
        self.families: list[list[Tree]] = [[]]

    @property
    def is_open(self) -> bool:
        return bool(self.labels)

    def take(self) -> list[Tree]:
        """The finished trees, handed over."""
        trees, self.families[0] = self.families[0], []
        return trees

    def feed(self, chunk: str) -> bool:
        """Read a chunk, all of it unless it is malformed; False if it is."""
        with collector_paused():
            return self._feed(chunk)

    def _feed(self, chunk: str) -> bool:
        labels, families, intern = self.labels, self.families, sys.intern
        for label, word, more, closing, stray in _OPENING.findall(chunk):
            if word:
                if more:
                    word += _SPACE.sub(" ", more)
                families[-1].append(Tree(intern(label), (), intern(word)))
                for _ in range(closing.count(")") - 1):
                    if not labels:
                        return False
                    children = families.pop()
                    families[-1].append(Tree(labels.pop(), tuple(children)))
                continue
            labels.append(intern(label))
            families.append([])
            # No leaf, so the next bracket is one deeper; and only the outermost may lack a label.
            if stray or len(labels) >= self.max_depth or (not label and len(labels) > 1):
                return False
        return True


# What is wrong, and where: runs only on a text that is known to be malformed ----------------------


class _Open:
    """An open bracket: where it stands, and what came in it so far."""

    __slots__ = ("has_children", "label", "offset", "word")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.label: str | None = None
        self.word: str | None = None
        self.has_children = False


def _diagnosis(text: str, source: str, max_depth: int) -> TreebankError:
    """The first thing wrong with a malformed text."""
    stack: list[_Open] = []
    for match in _TOKEN.finditer(text):
        if match[0] == "(":
            problem = _open(stack, match.start(), text, max_depth)
        elif match[0] == ")":
            problem = _close(stack, text)
        else:
            problem = _hold(stack, match[0])
        if problem:
            return _error(problem, text, match.start(), source)
    if not stack:
        problem = (
            "expected at least one tree, got none: give it trees such as (NP (DT the) (NN end))"
        )
        return _error(problem, text, 0, source)
    problem = (
        f"expected ')' to close the tree opened at {_at(text, stack[0].offset)}, got the end of "
        f"the text (open brackets: {len(stack)}, the last from {_at(text, stack[-1].offset)}): "
        "close each where it should end"
    )
    return _error(problem, text, len(text.rstrip(_SPACES)), source)


def _open(stack: list[_Open], offset: int, text: str, max_depth: int) -> str | None:
    """Put a '(' on the stack, or say why it cannot stand there."""
    if stack:
        parent = stack[-1]
        if parent.word is not None:
            return f"expected ')' after the word {parent.word!r}, got '(': bracket it with its tag"
        if parent.label is None and len(stack) > 1:
            return (
                f"expected a label for the bracket opened at {_at(text, parent.offset)}, got '(': "
                "add one, only the outermost bracket may go without"
            )
        parent.has_children = True
    if len(stack) >= max_depth:
        return (
            f"expected at most {max_depth} nested brackets, got one more: "
            f"close brackets (the outermost is open since {_at(text, stack[0].offset)}) "
            "or raise the depth limit"
        )
    stack.append(_Open(offset))
    return None


def _close(stack: list[_Open], text: str) -> str | None:
    """Take the top off the stack for a ')', or say why that cannot stand there."""
    if not stack:
        return "expected '(' to begin a tree, got ')' that closes nothing: remove it or add its '('"
    top = stack[-1]
    if top.word is None and not top.has_children:
        wanted = "a label" if top.label is None else f"a word or '(' after the label {top.label!r}"
        return (
            f"expected {wanted}, got ')': fill or remove the empty bracket opened at "
            f"{_at(text, top.offset)}"
        )
    stack.pop()
    return None


def _hold(stack: list[_Open], word: str) -> str | None:
    """Put a word into the top of the stack, as label or word, or say why it cannot stand there."""
    if not stack:
        return f"expected '(' to begin a tree, got the word {word!r}: bracket it or remove it"
    top = stack[-1]
    if top.has_children:
        return f"expected '(' or ')' after a child, got the word {word!r}: bracket it with its tag"
    if top.label is None:
        top.label = word
    elif top.word is None:
        top.word = word
    else:
        top.word += f" {word}"
    return None


def _second_tree(text: str) -> int:
    """Where the second tree of a text begins."""
    depth = 0
    starts = []
    for match in re.finditer(r"[()]", text):
        if match[0] == ")":
            depth -= 1
            continue
        if depth == 0:
            starts.append(match.start())
        depth += 1
    return starts[1]


def _error(problem: str, text: str, offset: int, source: str) -> TreebankError:
    line, column = _position(text, offset)
    return TreebankError(problem, source=source, line=line, column=column)


def _position(text: str, offset: int) -> tuple[int, int]:
    """Line and column from 1, the column in code points."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _at(text: str, offset: int) -> str:
    line, column = _position(text, offset)
    return f"{line}:{column}"


# Writing ------------------------------------------------------------------------------------------

_PTB_CODES = {"(": "LRB", ")": "RRB", "[": "LSB", "]": "RSB", "{": "LCB", "}": "RCB"}
_PTB_ESCAPES = str.maketrans({bracket: f"-{code}-" for bracket, code in _PTB_CODES.items()})
_PTB_BRACKETS = {f"-{code}-": bracket for bracket, code in _PTB_CODES.items()}
_PTB_ESCAPE = re.compile("|".join(_PTB_BRACKETS))
_LABEL = re.compile(rf"[^{_SPACES}()]++")
_LEAF_WORD = re.compile(rf"[^{_SPACES}()]++(?: [^{_SPACES}()]++)*+")


def ptb_escape(word: str) -> str:
    """A token as Penn treebanks spell it: each of ( ) [ ] { } as -LRB- and so on."""
    return word.translate(_PTB_ESCAPES)


def ptb_unescape(word: str) -> str:
    """The token of a Penn spelling: undoes ptb_escape, if the token spelled no -LRB- by itself."""
    return _PTB_ESCAPE.sub(lambda match: _PTB_BRACKETS[match[0]], word)


def write(tree: Tree) -> str:
    """The tree in one line of brackets, from which parse_tree reads an equal tree.

    Raises InputError for trees no brackets stand for: a label or word that is empty or holds a
    parenthesis or ASCII white space. Inside a word single spaces may stand; only the root may have
    the label '', and only over children.
    """
    for node in tree.nodes():
        if not _LABEL.fullmatch(node.label) and (node.label or node is not tree or tree.is_leaf):
            raise _unwritable("label", node.label)
        if node.word is not None and not _LEAF_WORD.fullmatch(node.word):
            raise _unwritable("word", node.word)
    return as_brackets(tree)


def _unwritable(kind: str, text: str) -> InputError:
    return InputError(
        f"expected a {kind} that brackets can hold, got {text!r}: replace parentheses "
        "(ptb_escape does it) and white space, and fill what is empty"
    )
