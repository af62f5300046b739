"""Trees as values: a label over children, or over a word.

No function here recurses, so a tree may be as deep as memory allows. What a tree can do for its
user (print, draw, become an `nltk.Tree`) is imported when it is asked for.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from lpcfg.base.errors import InputError
from lpcfg.base.extras import extra

if TYPE_CHECKING:
    import nltk

T = TypeVar("T")
_INDENT = 2


class Tree:
    """A constituent with a label and children, or a leaf (preterminal) with a label and a word.

    Trees are values: compared and hashed by content, and never assigned to once they are built.
    `str` gives one line of Penn brackets; a notebook shows a drawing.

    >>> tree = lpcfg.Tree.from_string("(S (NP (NNS Cats)) (VP (VBP sleep)) (. .))")
    >>> tree.label
    'S'
    >>> [child.label for child in tree.children]
    ['NP', 'VP', '.']
    >>> tree.tokens()
    ['Cats', 'sleep', '.']
    >>> print(tree)
    (S (NP (NNS Cats)) (VP (VBP sleep)) (. .))
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

    @classmethod
    def from_string(cls, text: str) -> "Tree":
        """Read the one tree of a text in Penn brackets.

        >>> lpcfg.Tree.from_string("(NP (DT the) (NN end))").children[1].word
        'end'
        """
        from lpcfg.trees.brackets import parse_tree

        if not isinstance(text, str):
            raise InputError(
                f"expected a tree in brackets as a string, got {type(text).__name__}: write it as "
                "in (NP (DT the) (NN end))"
            )
        return parse_tree(text)

    @property
    def is_leaf(self) -> bool:
        """Tell a leaf, which has a word, from a constituent, which has children."""
        return self.word is not None

    def nodes(self) -> Iterator["Tree"]:
        """Yield every node: this one first, parents before children, left before right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def leaves(self) -> list["Tree"]:
        """List the leaves from left to right, each a tree with a tag for its label and a word.

        >>> tree = lpcfg.Tree.from_string("(NP (DT the) (NN end))")
        >>> [(leaf.word, leaf.label) for leaf in tree.leaves()]
        [('the', 'DT'), ('end', 'NN')]
        """
        return [node for node in self.nodes() if node.word is not None]

    def tokens(self) -> list[str]:
        """List the words from left to right."""
        return [node.word for node in self.nodes() if node.word is not None]

    def pretty(self, width: int = 79) -> str:
        """Spell the tree in brackets over several lines, what fits into a line in one line.

        >>> tree = lpcfg.Tree.from_string("(S (NP (NNS Cats)) (VP (VBP sleep)) (. .))")
        >>> print(tree.pretty(width=20))
        (S
          (NP (NNS Cats))
          (VP (VBP sleep))
          (. .))
        """
        return _indented(self, width)

    def draw(self) -> str:
        """Draw the tree as SVG: text to be written to a file or shown by a browser.

        >>> lpcfg.Tree.from_string("(NP (DT the) (NN end))").draw()[:4]
        '<svg'
        """
        from lpcfg.trees.draw import svg

        return svg(self)

    def _repr_svg_(self) -> str:
        """Return an SVG drawing for a notebook."""
        return self.draw()

    def to_nltk(self) -> "nltk.Tree":
        """Make an `nltk.Tree` of the same labels and words.

        >>> nltk_tree = lpcfg.Tree.from_string("(NP (DT the) (NN end))").to_nltk()
        >>> nltk_tree.label(), nltk_tree.leaves()
        ('NP', ['the', 'end'])
        """
        with extra("nltk", "trees of NLTK"):
            import nltk

        def made(node: Tree, children: list["nltk.Tree"]) -> "nltk.Tree":
            return nltk.Tree(node.label, children if node.word is None else [node.word])

        return bottom_up(self, made)

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
        return as_brackets(self)


def as_brackets(tree: Tree) -> str:
    """Write the tree as one line of brackets, without checking that brackets can hold it."""
    return "".join(bracket_parts(tree))[1:]


def bracket_parts(tree: Tree) -> list[str]:
    """Split the line of brackets into parts, each behind a blank: one for a leaf, and two for a
    constituent, of which the second is `)`.
    """
    parts: list[str] = []
    stack = [iter((tree,))]
    while stack:
        for node in stack[-1]:
            if node.word is None:
                parts.append(f" ({node.label}")
                stack.append(iter(node.children))
                break
            parts.append(f" ({node.label} {node.word})")
        else:
            stack.pop()
            parts.append(")")
    del parts[-1]  # the lowest of the stack was no constituent
    return parts


def _indented(tree: Tree, width: int) -> str:
    sizes: dict[int, int] = {}  # characters of a node in one line
    for node in reversed(list(tree.nodes())):
        inside = sum(1 + sizes[id(child)] for child in node.children)
        sizes[id(node)] = 2 + len(node.label) + (1 + len(node.word) if node.word else inside)
    lines = []
    stack = [(tree, 0, 0)]  # with the depth of each, and the brackets to close behind it
    while stack:
        node, depth, closing = stack.pop()
        space = " " * (_INDENT * depth)
        if node.is_leaf or len(space) + sizes[id(node)] + closing <= width:
            lines.append(f"{space}{as_brackets(node)}{')' * closing}")
            continue
        lines.append(f"{space}({node.label}")
        *others, last = node.children
        stack.append((last, depth + 1, closing + 1))
        stack.extend((child, depth + 1, 0) for child in reversed(others))
    return "\n".join(lines)


def bottom_up(tree: Tree, combine: Callable[[Tree, list[T]], T]) -> T:
    """Call combine(node, the results of its children) for every node, children first.

    Return the root's result. Breadth-first order, backwards, reaches children before their parent,
    and siblings together, so the results still needed form a queue.
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
