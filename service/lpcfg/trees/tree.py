"""Trees as values: a label over children, or over a word.

No function here recurses, so a tree may be as deep as memory allows.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from lpcfg.errors import InputError

T = TypeVar("T")


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
        """Yield every node: this one first, parents before children, left before right."""
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
        return as_brackets(self)


def as_brackets(tree: Tree) -> str:
    """Write the tree as one line of brackets, without checking that brackets can hold it."""
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
