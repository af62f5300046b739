"""Read and write Penn brackets, and explain errors in text that is not well-formed trees.

Words are kept as the brackets spell them: the token `(` is the word `-LRB-` here. `ptb_escape` and
`ptb_unescape` convert between the two. Only ASCII white space separates words and labels; a no-
break space is part of its word. A leaf has one word even if the treebank has a space in it (CRAFT
has five such leaves: `(NN Xpd TTD)` is one token). White space inside a word is read as one space.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lpcfg.base.collector import collector_paused
from lpcfg.base.errors import InputError, TreebankError
from lpcfg.text.files import Source, texts
from lpcfg.trees.tree import Tree, bracket_parts

MAX_DEPTH = 500


# Reading ------------------------------------------------------------------------------------------

_SPACES = " \t\n\r\f\v"
# Matches an opening bracket with its label, for a leaf also its word (first part, all others) and
# all ')' that follow; or else any character that is out of place. A text that is cut before a '('
# gives the same matches.
_OPENING = re.compile(
    rf"\([{_SPACES}]*+([^{_SPACES}()]*+)[{_SPACES}]*+"
    rf"(?:([^{_SPACES}()]++)((?:[{_SPACES}]++[^{_SPACES}()]++)*+)[{_SPACES}]*+(\)[{_SPACES})]*+))?"
    rf"|([^{_SPACES}])"
)
_TOKEN = re.compile(rf"[()]|[^{_SPACES}()]++")
_FIRST_COLUMN = re.compile(r"^\(", re.MULTILINE)
_SPACE = re.compile(rf"[{_SPACES}]+")
# Matches of this many characters are held at a time, so that pausing the collector is worth it.
_CHUNK = 1 << 18
_BOM = "\ufeff"


def read(source: Source | Sequence[Source], *, max_depth: int = MAX_DEPTH) -> Iterator[Tree]:
    """Read every tree of a file, a folder, '-' (standard input), an open stream, or a list of
    those.

    A folder is read recursively, its files in sorted order, without hidden ones. Text is UTF-8,
    with or without a byte order mark, and may be compressed by gzip. Files are opened one after
    another as the trees are consumed.

    Raises:
        TreebankError: for text that is not well-formed trees, nested in at most max_depth brackets
        InputError: if there is nothing to read
    """
    sources: Sequence[Source]
    sources = [source] if isinstance(source, str) or not isinstance(source, Sequence) else source
    for entry in sources:
        for name, text in texts(entry):
            yield from read_string(text, source=name, max_depth=max_depth)


def read_string(
    text: str, *, source: str = "<string>", max_depth: int = MAX_DEPTH
) -> Iterator[Tree]:
    """Read every tree of a text. Errors name it as `source`."""
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


def without_malformed(
    text: str, *, source: str = "<string>", max_depth: int = MAX_DEPTH
) -> tuple[str, list[TreebankError]]:
    """Blank out the trees of a text that are malformed. Return the rest and an error for each.

    A tree is taken to begin with a '(' in the first column, as treebanks print it, so that a
    bracket too many or too few spoils one tree and not what follows. Lines keep their numbers.
    """
    text = text.removeprefix(_BOM)
    starts = [match.start() for match in _FIRST_COLUMN.finditer(text)]
    kept, faults = [], []
    for start, end in pairwise(sorted({0, *starts, len(text)})):
        block = text[start:end]
        lines = "\n" * block.count("\n")
        try:
            if block.strip(_SPACES):
                for _ in read_string(block, max_depth=max_depth):
                    pass
            kept.append(block)
        except TreebankError:
            kept.append(lines)
            before = "\n" * text.count("\n", 0, start)
            faults.append(_diagnosis(before + block, source, max_depth))
    return "".join(kept), faults


def parse_tree(text: str, *, source: str = "<string>", max_depth: int = MAX_DEPTH) -> Tree:
    """Read the only tree of a text."""
    trees = read_string(text, source=source, max_depth=max_depth)
    tree = next(trees)
    if next(trees, None) is not None:
        text = text.removeprefix(_BOM)
        problem = "expected one tree, got a second: give each tree by itself"
        raise _error(problem, text, _second_tree(text), source)
    return tree


def _chunks(text: str) -> Iterator[str]:
    """Cut the text before a '(' into chunks of about _CHUNK characters."""
    cuts = [0]
    while (cut := text.find("(", cuts[-1] + _CHUNK)) >= 0:
        cuts.append(cut)
    cuts.append(len(text))
    for start, end in pairwise(cuts):
        yield text[start:end]


class _Builder:
    """Builds trees from chunks of text. It notices malformed text, but not where or why.

    `labels` are those of the open brackets. families[0] holds the finished trees, and families[d]
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
        """Return the finished trees and forget them."""
        trees, self.families[0] = self.families[0], []
        return trees

    def feed(self, chunk: str) -> bool:
        """Read a chunk. Return False if it is malformed."""
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


# Diagnosis: runs only on a text that is known to be malformed -------------------------------------


class _Open:
    """An open bracket: its place in the text, and its content so far."""

    __slots__ = ("has_children", "label", "offset", "word")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.label: str | None = None
        self.word: str | None = None
        self.has_children = False


def _diagnosis(text: str, source: str, max_depth: int) -> TreebankError:
    """Describe the first fault in a malformed text."""
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
    """Put a '(' on the stack, or say why it is not allowed here."""
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
    """Take the top off the stack for a ')', or say why it is not allowed here."""
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
    """Add a word to the top of the stack, as label or word, or say why it is not allowed here."""
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
    """Find where the second tree of a text begins."""
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
    """Compute line and column from 1. The column counts code points."""
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
    """Spell a token as Penn treebanks do: each of ( ) [ ] { } as -LRB- and so on."""
    return word.translate(_PTB_ESCAPES)


def ptb_unescape(word: str) -> str:
    """Undo `ptb_escape`, for tokens that do not spell -LRB- themselves."""
    return _PTB_ESCAPE.sub(lambda match: _PTB_BRACKETS[match[0]], word)


def write(tree: Tree) -> str:
    """Write the tree as one line of brackets, from which `parse_tree` reads an equal tree.

    Raises:
        InputError: for a label or word that is empty or contains a parenthesis or ASCII white
            space. Single spaces inside a word are allowed. Only the root may have the label '',
            and only over children.
    """
    parts = bracket_parts(tree)
    line = "".join(parts)[1:]
    constituents = parts.count(")")
    leaves = len(parts) - 2 * constituents
    if not _has_only_own_marks(line, constituents + leaves, leaves):
        _check(tree)
    return line


def _has_only_own_marks(line: str, nodes: int, leaves: int) -> bool:
    """Tell whether a tree's line has no more brackets and blanks than the tree itself needs, and no
    other white space, so that no label or word has any, and none is empty.
    """
    return (
        line.count("(") == nodes
        and line.count(")") == nodes
        and line.count(" ") == nodes - 1 + leaves
        and "( " not in line
        and " )" not in line
        and line.isprintable()
    )


def _check(tree: Tree) -> None:
    """Raise InputError for the first label or word that brackets cannot hold."""
    for node in tree.nodes():
        if not _LABEL.fullmatch(node.label) and (node.label or node is not tree or tree.is_leaf):
            raise _unwritable("label", node.label)
        if node.word is not None and not _LEAF_WORD.fullmatch(node.word):
            raise _unwritable("word", node.word)


def _unwritable(kind: str, text: str) -> InputError:
    return InputError(
        f"expected a {kind} that brackets can hold, got {text!r}: replace parentheses "
        "(ptb_escape does it) and white space, and fill what is empty"
    )
