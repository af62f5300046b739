"""Trees: the bracket reader and writer, and s-trees there and back.

    read, read_string, parse_tree    Penn brackets → Tree
    write                            Tree → one line of brackets
    normalize                        a treebank's tree → the tree that is learned, scored and served
    binarize, restore                normalized tree ↔ s-tree; restore(binarize(t)) == t, always

Words are kept as they stand in the brackets: the token `(` is the word `-LRB-` here, and
`ptb_escape` and `ptb_unescape` lead from one to the other. Only ASCII white space separates what
stands in brackets; a no-break space is part of its word. A leaf has one word even where the
treebank put a space into it (CRAFT has five such: `(NN Xpd TTD)` is one token); any white space
inside is read as one space.

Symbols of s-trees, with every original label passed through `escape` first:

    NP            a label                  S|VP, NP|NN     a unary chain, top first
    @VP           what is left of a VP without its last children (horizontal = 0)
    @VP<PP        the same, and the last child in it is a PP (horizontal = 1)
    NP<           a leaf labelled NP, in a treebank that also has NP over children

Nothing here recurses: a tree may be as deep as memory allows.
"""

import gc
import gzip
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import IO, TypeVar

from lpcfg.errors import InputError, TreebankError

T = TypeVar("T")
Source = str | Path | IO[str] | IO[bytes]

MAX_DEPTH = 500
ROOT = "ROOT"
_WRAPPERS = frozenset({"", ROOT, "TOP"})
_TRACE = "-NONE-"


class Tree:
    """A constituent with a label and children, or a leaf (preterminal) with a label and a word.

    Trees are values: compared and hashed by content, and never assigned to once they are built.
    """

    __slots__ = ("children", "label", "word")

    def __init__(
        self, label: str, children: tuple["Tree", ...] = (), word: str | None = None
    ) -> None:
        if (word is None) is (not children):
            raise InputError(
                f"expected either children or a word under {label!r}, got "
                f"{'neither' if word is None else 'both'}: only a leaf has a word"
            )
        self.label = label
        self.children = children
        self.word = word

    @property
    def is_leaf(self) -> bool:
        return self.word is not None

    def nodes(self) -> Iterator["Tree"]:
        """Every node, this one first, parents before children, left before right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self) -> list["Tree"]:
        return [node for node in self.nodes() if node.word is not None]

    def tokens(self) -> list[str]:
        return [node.word for node in self.nodes() if node.word is not None]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        pairs = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if a.label != b.label or a.word != b.word or len(a.children) != len(b.children):
                return False
            pairs.extend(zip(a.children, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        return hash(tuple((node.label, node.word, len(node.children)) for node in self.nodes()))

    def __repr__(self) -> str:
        return _brackets(self)


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
_GZIP_MAGIC = b"\x1f\x8b"
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


def texts(source: Source) -> Iterator[tuple[str, str]]:
    """(name, text) of each file or stream that a source stands for, without byte order marks."""
    if source == "-":
        yield "<stdin>", _text(getattr(sys.stdin, "buffer", sys.stdin), "<stdin>")
    elif isinstance(source, str | Path):
        for path in _files(Path(source)):
            try:
                with path.open("rb") as stream:
                    text = _text(stream, str(path))
            except OSError as error:
                raise InputError(
                    f"expected a readable treebank, got {error.strerror!r} at {path}: "
                    "check the path and its permissions"
                ) from error
            yield str(path), text
    else:
        name = str(getattr(source, "name", "<stream>"))
        yield name, _text(source, name)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not any(p.startswith(".") for p in file.relative_to(path).parts)
    )
    if not files:
        raise InputError(f"expected treebank files in the folder {path}, got none: check the path")
    return files


def _text(stream: IO[str] | IO[bytes], source: str) -> str:
    try:
        content = stream.read()
        if isinstance(content, str):
            return content.removeprefix(_BOM)
        if content.startswith(_GZIP_MAGIC):
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8", "replace").removeprefix(_BOM)
        byte = error.object[error.start]
        problem = f"expected UTF-8, got the byte 0x{byte:02x}: convert the text to UTF-8"
        raise _error(problem, before, len(before), source) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"expected a whole gzip file, got a damaged one ({error}), at {source}: copy it again"
        ) from error


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
    return _brackets(tree)


def _unwritable(kind: str, text: str) -> InputError:
    return InputError(
        f"expected a {kind} that brackets can hold, got {text!r}: replace parentheses "
        "(ptb_escape does it) and white space, and fill what is empty"
    )


def _brackets(tree: Tree) -> str:
    parts: list[str] = []
    stack: list[Tree | None] = [tree]
    while stack:
        node = stack.pop()
        if node is None:
            parts.append(")")
        elif node.word is not None:
            parts.append(f" ({node.label} {node.word})")
        else:
            parts.append(f" ({node.label}")
            stack.append(None)
            stack.extend(reversed(node.children))
    return "".join(parts)[1:]


# Normalized trees ---------------------------------------------------------------------------------


def normalize(tree: Tree) -> Tree | None:
    """The tree without traces, function tags and wrapper; None if nothing remains.

    - Leaves labelled -NONE- go, and so does every node they leave without children. Nothing else
      goes: an NP that is left over a single NP stays, a bracket of the treebank like any other.
    - A label ends before its first '-' or '=' (NP-SBJ-1 → NP, NP=2 → NP, ADVP|PRT-CLR → ADVP|PRT),
      but one that begins with either is kept as it is (-LRB-, -RRB-).
    - A root labelled '', ROOT or TOP gives way to its only child. One that has several children
      stays, and is labelled ROOT. One that is a leaf stays.
    """
    cleaned = _bottom_up(tree, _clean)
    while cleaned is not None and cleaned.label in _WRAPPERS and cleaned.word is None:
        if len(cleaned.children) > 1:
            return Tree(ROOT, cleaned.children)
        cleaned = cleaned.children[0]
    return cleaned


def _clean(node: Tree, children: list[Tree | None]) -> Tree | None:
    label = _bare(node.label)
    if node.word is not None:
        if label == _TRACE:
            return None
        return node if label == node.label else Tree(label, (), node.word)
    kept = tuple([child for child in children if child is not None])
    return Tree(label, kept) if kept else None


@lru_cache(maxsize=1 << 16)
def _bare(label: str) -> str:
    """A label without its function tags and indices."""
    return label if label.startswith(("-", "=")) else re.split("[-=]", label, maxsplit=1)[0]


# S-trees ------------------------------------------------------------------------------------------

_ESCAPES = {character: f"%{ord(character):02X}" for character in "%|@<"}
_SPECIAL = re.compile("[%|@<]")
_ESCAPED = re.compile("|".join(_ESCAPES.values()))


def escape(label: str) -> str:
    """A label as it stands in symbols: % | @ < as %25 %7C %40 %3C, all else as it is."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], label)


def unescape(text: str) -> str:
    """The label that `escape` made the text from."""
    return _ESCAPED.sub(lambda match: chr(int(match[0][1:], 16)), text)


_escape = lru_cache(maxsize=1 << 16)(escape)

SIBLING_MARK = "<"
"""Stands in an intermediate symbol before its last child's label."""
LEAF_MARK = "<"
"""Ends the symbol of a leaf that needs to differ from that of a constituent of the same label."""


def is_intermediate(symbol: str) -> bool:
    """Whether binarization made the symbol: it stands for no constituent of the original tree."""
    return symbol.startswith("@")


def split_chain(symbol: str) -> list[str]:
    """The original labels of an s-tree's symbol, top first; none for an intermediate one."""
    if is_intermediate(symbol):
        return []
    return [unescape(label) for label in symbol.removesuffix(LEAF_MARK).split("|")]


def binarize(tree: Tree, *, horizontal: int = 0) -> Tree:
    """The s-tree of a tree: every node has a word or two children.

    A unary chain becomes one node, also over a leaf: its labels, top first, joined by '|'. With X
    the chain's bottom label, children c1 ... cn become ((c1 c2) ... cn), the inner nodes labelled
    @X or, with horizontal = 1, @X<Y where Y is the bottom label of the last child inside.
    """
    if horizontal not in (0, 1):
        raise InputError(
            f"expected horizontal markovization 0 or 1, got {horizontal!r}: choose one of the two"
        )

    def combine(node: Tree, children: list[Tree]) -> Tree:
        label = _escape(node.label)
        if node.word is not None:
            return node if label == node.label else Tree(label, (), node.word)
        if len(children) == 1:
            only = children[0]
            return Tree(f"{label}|{only.label}", only.children, only.word)
        left = children[0]
        for child in children[1:-1]:
            mark = SIBLING_MARK + child.label.rpartition("|")[2] if horizontal else ""
            left = Tree(f"@{label}{mark}", (left, child))
        return Tree(label, (left, children[-1]))

    return _bottom_up(tree, combine)


def restore(stree: Tree) -> Tree:
    """The tree of an s-tree: restore(binarize(tree)) == tree, whatever the markovization.

    A LEAF_MARK makes no difference.
    """
    restored = _bottom_up(stree, _unfold)
    if is_intermediate(stree.label):
        raise _no_constituent(stree.label)
    return restored[0]


def _unfold(node: Tree, parts: list[list[Tree]]) -> list[Tree]:
    """The original trees a node stands for: one, or for an intermediate symbol several siblings."""
    children = parts[0] if parts else []
    for part in parts[1:]:
        children += part
    if is_intermediate(node.label):
        if node.word is not None:
            raise _no_constituent(node.label)
        return children
    *above, bottom = split_chain(node.label)
    tree = Tree(bottom, tuple(children), node.word)
    for label in reversed(above):
        tree = Tree(label, (tree,))
    return [tree]


def _no_constituent(symbol: str) -> InputError:
    return InputError(
        f"expected an s-tree whose root and leaves have symbols of constituents, got {symbol!r}: "
        "label them without '@', or pass them through `escape`"
    )


def _bottom_up(tree: Tree, combine: Callable[[Tree, list[T]], T]) -> T:
    """combine(node, the results of its children) at every node, children first: the root's result.

    Breadth-first order, backwards, meets children before their parent, and siblings together: the
    results still wanted form a queue.
    """
    order = [tree]
    for node in order:
        order.extend(node.children)
    results: list[T] = []
    head = 0
    for node in reversed(order):
        tail = head + len(node.children)
        results.append(combine(node, results[head:tail][::-1]))
        head = tail
    return results[-1]
