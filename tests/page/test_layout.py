"""Layout of random trees: nothing overlaps, no line goes through a label; and it is quick."""

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from tests.page.conftest import DESKTOP, PHONE, Reader, of_words

LABELS = ("S", "NP", "VP", "PP", "SBAR", "WHADVP", "X")
WORDS = ("a", "of", "telescope", "I", "internationalization", "saw", ".", "😀", "漢字")
TOUCH = 0.02  # pixels that rounding may add


def brackets(draw: random.Random, words: int) -> str:
    """Draw a random tree of so many words, with chains, wide nodes and deep ones."""
    if words == 1 and draw.random() < 0.7:
        return f"({draw.choice(('DT', 'NN', '-LRB-', 'PRP$'))} {draw.choice(WORDS)})"
    parts = min(words, draw.choice((1, 2, 2, 2, 3, 5)))
    cuts = sorted(draw.sample(range(1, words), parts - 1))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, words], strict=True)]
    children = " ".join(brackets(draw, size) for size in sizes)
    return f"({draw.choice(LABELS)} {children})"


@dataclass(frozen=True)
class Box:
    """A rectangle on the screen."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: "Box") -> bool:
        return (
            self.x + TOUCH < other.x + other.width
            and other.x + TOUCH < self.x + self.width
            and self.y + TOUCH < other.y + other.height
            and other.y + TOUCH < self.y + self.height
        )


# Every `fold`-th node is folded, none where it is 0.
LAYOUT = """
async ([tree, way, fold]) => {
  const { layout } = await import("/layout.js");
  const { outline } = await import("/outline.js");
  const { readTree } = await import("/brackets.js");
  const nodes = readTree(tree);
  nodes.forEach((node) => { node.probability = (node.id % 4) / 3; });
  const isFolded = ({ id }) => fold > 0 && id % fold === 1;
  const folded = new Set(nodes.filter(isFolded).map((node) => node.id));
  const { width, height, blocks } = { upright: layout, outline }[way](nodes[0], folded);
  return {
    width, height,
    blocks: blocks.map(({ nodes, textBox, edges }) => ({
      boxes: nodes.map(({ node, box }) => ({ id: node.id, start: node.start, ...box })),
      text: textBox,
      edges: edges.map(({ points }) => points),
    })),
  };
}
"""
WAYS = ("upright", "outline")


def box_of(told: dict[str, float]) -> Box:
    return Box(told["x"], told["y"], told["width"], told["height"])


def segments(points: list[list[float]]) -> list[Box]:
    """List the straight pieces of a line, as boxes without breadth."""
    return [
        Box(min(a[0], b[0]), min(a[1], b[1]), abs(a[0] - b[0]), abs(a[1] - b[1]))
        for a, b in pairwise(points)
    ]


def check(told: dict[str, Any]) -> None:
    boxes = [box_of(one) for block in told["blocks"] for one in block["boxes"]]
    boxes += [box_of(block["text"]) for block in told["blocks"] if block["text"]]
    for place, one in enumerate(boxes):
        assert one.x >= 0
        assert one.y >= 0
        assert one.x + one.width <= told["width"]
        assert one.y + one.height <= told["height"]
        assert not [other for other in boxes[place + 1 :] if one.meets(other)]
    for block in told["blocks"]:
        for points in block["edges"]:
            for piece in segments(points):
                assert min(piece.width, piece.height) < 0.5  # vertical or level
                assert not [other for other in boxes if piece.meets(other)]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_overlaps_in_random_trees(reader: Reader, way: str) -> None:
    page = reader.open("It rained.")
    draw = random.Random(20261118)
    for words in (1, 2, 3, 5, 8, 13, 21, 40, 60, 60):
        for fold in (3, 0):
            told = page.evaluate(LAYOUT, [brackets(draw, words), way, fold])
            check(told)


@pytest.mark.parametrize("way", WAYS)
def test_words_stand_in_their_order(reader: Reader, way: str) -> None:
    page = reader.open("It rained.")
    tree = brackets(random.Random(7), 50)
    told = page.evaluate(LAYOUT, [tree, way, 0])
    leaves = sorted(
        (block for block in told["blocks"] if block["text"]),
        key=lambda block: block["boxes"][0]["start"],
    )
    places = [block["text"]["x" if way == "upright" else "y"] for block in leaves]
    assert len(leaves) == 50
    assert places == sorted(set(places))
    if way == "upright":
        assert len({block["text"]["y"] for block in leaves}) == 1


OPENED = """
async ([answer, key]) => {
  const { TreeView } = await import("/tree-view.js");
  const { treeOf } = await import("/analysis.js");
  const sentence = answer.sentences[0];
  const tree = new TreeView({ label: "a tree" });
  document.querySelector("#trees").replaceChildren(tree.element);
  const nodes = treeOf(sentence, sentence.parses[0]);
  tree.show(nodes);
  const busy = () => tree.picture.getAttribute("aria-busy");
  const early = new Set(tree.picture.querySelectorAll(".node"));
  const waits = busy();
  if (key !== null) {
    tree.picture.querySelector("[tabindex='0']").focus();
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
  const focused = document.activeElement.querySelector(".word")?.textContent ?? null;
  while (busy() === "true") await new Promise((done) => setTimeout(done, 5));
  const order = [...tree.picture.querySelectorAll(".node")].map((one) => Number(one.dataset.node));
  const view = tree.box.getBoundingClientRect();
  const isSeen = ({ x, y, right, bottom }) => x < view.right && right > view.x
    && y < Math.min(view.bottom, window.innerHeight) && bottom > view.y;
  const late = [...tree.picture.querySelectorAll(".node")].filter((one) => !early.has(one)
    && [...one.children].some((part) => isSeen(part.getBoundingClientRect())));
  tree.element.remove();
  return { first: early.size, waits, focused, order, late: late.length, all: nodes.length };
}
"""


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_nodes_in_view_are_drawn_at_once_and_the_others_soon(
    reader: Reader, size: tuple[int, int]
) -> None:
    page = reader.open("It rained.")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for words, is_long in ((10, False), (100, True)):
        told = page.evaluate(OPENED, [reader.parse(of_words(words)), None])
        assert told["late"] == 0
        assert told["order"] == list(range(told["all"]))
        assert (told["waits"] == "true") is is_long
        assert (told["first"] < told["all"] / 2) is is_long


def test_a_key_leads_to_a_node_that_is_not_drawn_yet(reader: Reader) -> None:
    page = reader.open("It rained.")
    told = page.evaluate(OPENED, [reader.parse(of_words(100)), "End"])
    assert told["focused"] == "."
    assert told["order"] == list(range(told["all"]))


DRAWN = """
async ([answer, marginals]) => {
  const { TreeView } = await import("/tree-view.js");
  const { ChartView } = await import("/chart-view.js");
  const { treeOf } = await import("/analysis.js");
  const sentence = answer.sentences[0];
  const tree = new TreeView({ label: "a tree" });
  const chart = new ChartView({ onSpot() {}, onRead() {} });
  document.body.append(tree.element, chart.element);
  const nodes = treeOf(sentence, sentence.parses[0]);
  const timed = (draw, element) => {
    let best = Infinity;
    for (let turn = 0; turn < 7; turn += 1) {
      const began = performance.now();
      draw();
      element.getBoundingClientRect();
      best = Math.min(best, performance.now() - began);
    }
    return best;
  };
  const times = [
    timed(() => tree.show(treeOf(sentence, sentence.parses[0])), tree.element),
    timed(() => chart.show(marginals, { threshold: 0.01, nodes }), chart.element),
  ];
  tree.element.remove();
  chart.element.remove();
  return times;
}
"""


def full_chart(tokens: list[dict[str, Any]]) -> dict[str, Any]:
    """Fill marginals with a cell for every span of up to ten words, more than any sentence has."""
    spans = [
        {"start": start, "end": end}
        for start in range(len(tokens))
        for end in range(start + 1, min(start + 10, len(tokens)) + 1)
    ]
    labels = ("S", "NP", "VP")
    return {
        "tokens": tokens,
        "cells": [{**span, "expected": 0.9} for span in spans],
        "spans": [{**span, "label": one, "probability": 0.3} for span in spans for one in labels],
    }


def test_drawing_time_grows_in_proportion_to_the_words(reader: Reader) -> None:
    page = reader.open("It rained.")

    def milliseconds(words: int) -> list[float]:
        answer = reader.parse(of_words(words))
        tokens = answer["sentences"][0]["tokens"]
        assert len(tokens) == words
        times: list[float] = page.evaluate(DRAWN, [answer, full_chart(tokens)])
        return times

    small, large = milliseconds(25), milliseconds(100)
    print(f"milliseconds for tree and chart: 25 words {small}, 100 words {large}")
    # four times the words: twice that for the chart's longer spans, and the clock's resolution
    assert all(more < 8 * less + 5 for less, more in zip(small, large, strict=True))
