/**
 * Places the parts of a tree: a tidy layout (Reingold and Tilford, 1981) by measured text.
 *
 * All words stand in one line below. Nodes stand as near to them as their children let them,
 * parents over the middle of their children, and subtrees as near to each other as their contours
 * let them. A chain of nodes over the same words (S over VP) is one block of stacked labels.
 *
 * Blocks are placed in two directions: `cross`, in which the words follow each other, and `main`,
 * from the words (0) up to the root. A contour is how far a subtree reaches, relative to its
 * block's centre, at every UNIT of `main`.
 */

import { numberOf } from "./doubt.js";
import { fitted, widthOf } from "./type.js";

const UNIT = 4;
const MARGIN = 12;
const WIDEST_FOLDED = 180;
const WIDEST_WORD = 240;

const LINE = 23;
const TAG_LINE = 17;
const PAD = 6;
const GAP = 9;
const RISE = 15;
const WORD = 22;
const FOLD = 22;
/** Pixels between a label and its number. */
export const BESIDE = 5;

/**
 * Place a tree: its blocks with their rectangles, labels and edges, and the size of it all.
 *
 * @param root    the node to draw from
 * @param folded  set of ids of nodes whose children are not drawn
 */
export function layout(root, folded = new Set()) {
  const top = blockOf(root, folded);
  const blocks = [...preOrder(top)];
  for (const block of blocks) measure(block);
  const contour = shape(top);
  const low = Math.min(...contour.low);
  top.centre = MARGIN - low;
  for (const block of blocks) {
    for (const child of block.children) child.centre = block.centre + child.offset;
  }
  const height = top.top + 2 * MARGIN;
  return {
    width: Math.max(...contour.high) - low + 2 * MARGIN,
    height,
    sideways: false,
    blocks: blocks.map((block) => finished(block, height)),
  };
}

/** The least width of a tree over these leaves, none of them folded: the words stand in one line. */
export function leastWidth(leaves) {
  return leaves.reduce((sum, leaf) => sum + widthOf(drawnText(leaf, false), "word") + GAP, 2 * MARGIN - GAP);
}

// Blocks ------------------------------------------------------------------------------------------

function blockOf(node, folded) {
  const nodes = [node];
  let last = node;
  while (!folded.has(last.id) && last.children.length === 1 && last.children[0].word === null) {
    [last] = last.children;
    nodes.push(last);
  }
  const isFolded = folded.has(last.id) && last.word === null;
  return {
    nodes,
    isFolded,
    isTag: last.word !== null,
    text: drawnText(last, isFolded),
    children: isFolded ? [] : last.children.map((child) => blockOf(child, folded)),
  };
}

/** The text under a tag, or under a folded node, cut where it is very wide; null elsewhere. */
export function drawnText(node, isFolded) {
  if (isFolded) return fitted(textUnder(node), "word", WIDEST_FOLDED);
  return node.word === null ? null : fitted(node.word, "word", WIDEST_WORD);
}

function textUnder(node) {
  const words = [];
  const agenda = [node];
  while (agenda.length > 0) {
    const next = agenda.pop();
    if (next.word !== null) words.push(next.word);
    agenda.push(...next.children.toReversed());
  }
  return words.join(" ");
}

function* preOrder(block) {
  yield block;
  for (const child of block.children) yield* preOrder(child);
}

/** How wide the box of a node is. */
export function widthOfNode(node, pad) {
  const label = widthOf(node.label, node.word === null ? "label" : "tag");
  const number = widthOf(numberOf(node.probability), "number");
  return label + (number && number + BESIDE) + 2 * pad;
}

function measure(block) {
  block.cross = Math.max(...block.nodes.map((node) => widthOfNode(node, PAD)));
  block.main = (block.isTag ? TAG_LINE : LINE) * block.nodes.length;
  block.textCross = block.text === null ? 0 : widthOf(block.text, "word");
}

// Contours ----------------------------------------------------------------------------------------

/** Place what is under a block; its contour, from the words up to its top. */
function shape(block) {
  if (block.children.length === 0) return leafShape(block);
  const shapes = block.children.map(shape);
  block.bottom = Math.max(...block.children.map((child) => child.top)) + RISE;
  block.top = block.bottom + block.main;
  const bar = binAt(block.bottom - RISE / 2);
  for (const contour of shapes) extend(contour, bar + 1, 0);
  const offsets = packed(shapes, GAP);
  const middle = (offsets[0] + offsets.at(-1)) / 2;
  block.children.forEach((child, number) => {
    child.offset = offsets[number] - middle;
  });
  const whole = merged(shapes, offsets.map((offset) => offset - middle));
  extend(whole, binAt(block.top) + 1, block.cross / 2);
  return whole;
}

function leafShape(block) {
  block.bottom = WORD + (block.isFolded ? FOLD : 0);
  block.top = block.bottom + block.main;
  const contour = { low: [], high: [] };
  extend(contour, binAt(block.bottom) + 1, block.textCross / 2);
  if (block.isFolded) widen(contour, block.cross / 2);
  extend(contour, binAt(block.top) + 1, block.cross / 2);
  return contour;
}

function binAt(main) {
  return Math.floor(main / UNIT);
}

/** Let the contour reach `half` to both sides, up to this many bins. */
function extend(contour, bins, half) {
  while (contour.low.length < bins) {
    contour.low.push(-half);
    contour.high.push(half);
  }
}

function widen(contour, half) {
  contour.low = contour.low.map((reach) => Math.min(reach, -half));
  contour.high = contour.high.map((reach) => Math.max(reach, half));
}

/** How far from the first each subtree stands, no two of them nearer than the gap. */
function packed(shapes, gap) {
  const offsets = [0];
  const reached = [...shapes[0].high];
  for (const { low, high } of shapes.slice(1)) {
    let offset = -Infinity;
    for (let bin = 0; bin < low.length && bin < reached.length; bin += 1) {
      offset = Math.max(offset, reached[bin] + gap - low[bin]);
    }
    offsets.push(offset);
    for (let bin = 0; bin < high.length; bin += 1) reached[bin] = offset + high[bin];
  }
  return offsets;
}

function merged(shapes, offsets) {
  const bins = Math.max(...shapes.map((contour) => contour.low.length));
  const whole = { low: Array(bins).fill(Infinity), high: Array(bins).fill(-Infinity) };
  shapes.forEach(({ low, high }, number) => {
    for (let bin = 0; bin < low.length; bin += 1) {
      whole.low[bin] = Math.min(whole.low[bin], offsets[number] + low[bin]);
      whole.high[bin] = Math.max(whole.high[bin], offsets[number] + high[bin]);
    }
  });
  return whole;
}

// Places on paper ---------------------------------------------------------------------------------

function finished(block, height) {
  const point = (cross, main) => [cross, height - MARGIN - main];
  const rectangle = (main, width, length) => ({
    x: block.centre - width / 2, y: height - MARGIN - main - length, width, height: length,
  });
  const box = rectangle(block.bottom, block.cross, block.main);
  const each = box.height / block.nodes.length;
  return {
    isTag: block.isTag,
    isFolded: block.isFolded,
    nodes: block.nodes.map((node, number) => ({
      node,
      box: { ...box, y: box.y + number * each, height: each },
    })),
    text: block.text,
    textBox: block.text === null ? null : rectangle(0, block.textCross, WORD),
    triangle: block.isFolded ? triangle(block, point) : null,
    edges: block.children.map((child) => ({
      child: child.nodes[0],
      points: elbow(block, child, point),
    })),
  };
}

function triangle(block, point) {
  return [
    point(block.centre, block.bottom),
    point(block.centre - block.textCross / 2, WORD),
    point(block.centre + block.textCross / 2, WORD),
  ];
}

function elbow(block, child, point) {
  const bar = block.bottom - RISE / 2;
  const ends = [point(block.centre, block.bottom), point(child.centre, child.top)];
  if (Math.abs(block.centre - child.centre) < 0.5) return ends;
  return [ends[0], point(block.centre, bar), point(child.centre, bar), ends[1]];
}
