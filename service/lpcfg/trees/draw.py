"""Draw a tree: one line of SVG that needs nothing else, or of LaTeX for the package forest."""

import re
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from lpcfg.trees.tree import Tree

# In pixels. A character of 13 px sans-serif is 6 to 8 wide, a Chinese one twice as much.
_CHARACTER = 8.0
_GAP = 14.0
_LEVEL = 42.0
_MARGIN = 20.0
_BASELINE = 4.0  # from the middle of a line of text to its baseline
_PAD = 11.0  # between that middle and the edges above and below
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2
_STYLE = "text{font:13px sans-serif;text-anchor:middle}.word{font-style:italic}line{stroke:#888}"

# LaTeX's own characters; [ ] , = mean something to forest only outside of braces.
_TEX = str.maketrans(
    {
        **{character: rf"\{character}" for character in "#$%&_{}"},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        '"': r"\textquotedbl{}",
    }
)


@dataclass(slots=True)
class _Node:
    """A node in pre-order: its parent's place, its depth, and the words under it."""

    tree: Tree
    parent: int
    depth: int
    words: int = 0
    x: float = 0.0


def svg(tree: Tree) -> str:
    """Draw the tree from its root down, with all words in one row below."""
    nodes = _nodes(tree)
    width = _place(nodes)
    bottom = _height(1 + max(node.depth for node in nodes))
    parts = []
    for node in nodes:
        y = _height(node.depth)
        if node.parent >= 0:
            above = nodes[node.parent]
            parts.append(_line(above.x, _height(above.depth), node.x, y))
        if node.tree.word is not None:
            parts.append(_line(node.x, y, node.x, bottom))
            parts.append(_text(node.x, bottom, node.tree.word, ' class="word"'))
        parts.append(_text(node.x, y, node.tree.label, ""))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
        f'height="{bottom + _MARGIN:.0f}"><style>{_STYLE}</style>{"".join(parts)}</svg>'
    )


def _nodes(tree: Tree) -> list[_Node]:
    nodes: list[_Node] = []
    agenda = [(tree, -1)]
    while agenda:
        node, parent = agenda.pop()
        place = len(nodes)
        nodes.append(_Node(node, parent, 1 + nodes[parent].depth if parent >= 0 else 0))
        agenda += [(child, place) for child in reversed(node.children)]
    for drawn in reversed(nodes):
        drawn.words += drawn.tree.is_leaf
        if drawn.parent >= 0:
            nodes[drawn.parent].words += drawn.words
    return nodes


def _place(nodes: list[_Node]) -> float:
    """Compute the x of every node: words side by side, parents centred over their children."""
    x = _MARGIN
    widest = 0.0  # width of the labels over the next word alone
    for node in nodes:
        widest = max(widest, _width(node.tree.label)) if node.words == 1 else 0.0
        if node.tree.word is not None:
            room = max(widest, _width(node.tree.word))
            node.x = x + room / 2
            x += room + _GAP
            widest = 0.0
    spans: dict[int, tuple[float, float]] = {}
    for place in range(len(nodes) - 1, -1, -1):
        node = nodes[place]
        first, last = spans.pop(place, (node.x, node.x))
        node.x = (first + last) / 2
        if node.parent >= 0:
            _, right = spans.get(node.parent, (0.0, node.x))
            spans[node.parent] = (node.x, right)
    return x - _GAP + _MARGIN


def _width(text: str) -> float:
    return _CHARACTER * sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _height(depth: int) -> float:
    return _MARGIN + depth * _LEVEL


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1 + _PAD:.1f}" x2="{x2:.1f}" y2="{y2 - _PAD:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    drawn = escape(_NO_XML.sub("\ufffd", text))
    return f'<text{kind} x="{x:.1f}" y="{y + _BASELINE:.1f}">{drawn}</text>'


def latex(tree: Tree) -> str:
    r"""Write the tree for LaTeX, which needs \usepackage[linguistics]{forest}."""
    parts = [r"\begin{forest}"]
    waiting: list[Tree | None] = [tree]
    while waiting:
        node = waiting.pop()
        if node is None:
            parts.append("]")
            continue
        parts.append(f" [{{{node.label.translate(_TEX)}}}")
        waiting.append(None)
        if node.word is not None:
            parts.append(f" [{{{node.word.translate(_TEX)}}}]")
        waiting.extend(reversed(node.children))
    return "".join(parts) + r" \end{forest}"
