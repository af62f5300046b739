/**
 * Places the parts of a tree as an outline: one row for each word, for narrow screens.
 *
 * A node stands in the row of its first word; its first child follows in the same row, the other
 * children below it, indented. The result has the shape that layout.js describes.
 */

import { drawnText, widthOfNode } from "./layout.js";
import { widthOf } from "./type.js";

const MARGIN = 10;
const ROW = 25;
const BOX = 20;
const PAD = 6;
const GAP = 9;
const INDENT = 26;
/** Where the line to the children below leaves a box. */
const STEM = 9;

/** Place a tree from its root; the children of `folded` ids are not drawn. */
export function outline(root, folded = new Set()) {
  const blocks = [];
  const size = { width: 0, rows: 0 };
  place(root, MARGIN, { blocks, size, folded });
  return {
    width: size.width + MARGIN,
    height: size.rows * ROW + 2 * MARGIN,
    sideways: true,
    blocks,
  };
}

function place(node, x, drawn) {
  const row = drawn.size.rows;
  const box = boxAt(node, x, row);
  const isFolded = drawn.folded.has(node.id) && node.word === null;
  const words = drawnText(node, isFolded);
  const block = {
    isTag: node.word !== null,
    isFolded,
    nodes: [{ node, box }],
    text: words,
    textBox: null,
    triangle: null,
    edges: [],
  };
  drawn.blocks.push(block);
  if (words !== null) {
    block.textBox = { x: box.x + box.width + GAP, y: box.y, width: widthOf(words, "word"), height: BOX };
    drawn.size.rows += 1;
  }
  const end = block.textBox ?? box;
  drawn.size.width = Math.max(drawn.size.width, end.x + end.width);
  if (words !== null) return box;
  node.children.forEach((child, number) => {
    const at = place(child, number === 0 ? box.x + box.width + GAP : x + INDENT, drawn);
    block.edges.push({ child, points: line(box, at, number === 0) });
  });
  return box;
}

function boxAt(node, x, row) {
  return { x, y: MARGIN + row * ROW + (ROW - BOX) / 2, width: widthOfNode(node, PAD), height: BOX };
}

function line(from, to, isFirst) {
  const middle = to.y + to.height / 2;
  if (isFirst) return [[from.x + from.width, middle], [to.x, middle]];
  return [[from.x + STEM, from.y + from.height], [from.x + STEM, middle], [to.x, middle]];
}
