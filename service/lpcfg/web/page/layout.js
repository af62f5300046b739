/**
 * Places the parts of a tree: a tidy layout (Reingold and Tilford, 1981) by measured text.
 *
 * All words stand in one line. Nodes stand as near to them as their children let them, parents
 * over the middle of their children, and subtrees as near to each other as their contours let
 * them. A chain of nodes over the same words (S over VP) is one block of stacked labels.
 *
 * Places are reckoned in two directions, so that trees can be drawn upright or sideways: `cross`,
 * in which the words follow each other, and `main`, from the words (0) to the root. A contour is
 * how far a subtree reaches, relative to its block's centre, at every UNIT of `main`.
 */

import { short } from "./numbers.js";
import { fitted, widthOf } from "./type.js";

const UNIT = 4;
const MARGIN = 12;
const WIDEST_FOLDED = 180;

/** Upright: words below, root above. */
const UPRIGHT = { line: 33, tagLine: 30, pad: 6, gap: 9, rise: 15, word: 22, fold: 22 };
/** Upright, without numbers under the labels. */
const PLAIN = { ...UPRIGHT, line: 22, tagLine: 18 };
/** Sideways: words at the left, root at the right. */
const SIDEWAYS = { line: 21, tagLine: 19, pad: 6, gap: 5, rise: 16, word: 12, fold: 22 };

/**
 * Place a tree: its blocks with their rectangles, labels and edges, and the size of it all.
 *
 * @param root    the node to draw from
 * @param folded  set of ids of nodes whose children are not drawn
 */
export function layout(root, { sideways = false, folded = new Set() } = {}) {
  const top = blockOf(root, folded);
  const blocks = [...preOrder(top)];
  const sizes = sizesFor(blocks, sideways);
  for (const block of blocks) measure(block, sizes, sideways);
  if (sideways) alignWords(blocks);
  const contour = shape(top, sizes);
  const low = Math.min(...contour.low);
  top.centre = MARGIN - low;
  for (const block of blocks) {
    for (const child of block.children) child.centre = block.centre + child.offset;
  }
  const extent = Math.max(...contour.high) - low + 2 * MARGIN;
  const height = top.top + 2 * MARGIN;
  const turn = sideways ? turned() : upright(height);
  return {
    width: sideways ? height : extent,
    height: sideways ? extent : height,
    sideways,
    blocks: blocks.map((block) => finished(block, sizes, turn)),
  };
}

function sizesFor(blocks, sideways) {
  if (sideways) return SIDEWAYS;
  const nodes = blocks.flatMap((block) => block.nodes);
  return nodes.some((node) => short(node.probability) !== "") ? UPRIGHT : PLAIN;
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
    text: isFolded ? fitted(textUnder(last), "word", WIDEST_FOLDED) : last.word,
    children: isFolded ? [] : last.children.map((child) => blockOf(child, folded)),
  };
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

function measure(block, sizes, sideways) {
  const line = block.isTag ? sizes.tagLine : sizes.line;
  const across = (node) => {
    const label = widthOf(node.label, block.isTag ? "tag" : "label");
    const number = widthOf(short(node.probability), "number");
    return (sideways ? label + (number && number + 7) : Math.max(label, number)) + 2 * sizes.pad;
  };
  const width = Math.max(...block.nodes.map(across));
  const stack = line * block.nodes.length;
  [block.cross, block.main] = sideways ? [stack, width] : [width, stack];
  if (block.text === null) return;
  const text = widthOf(block.text, "word");
  [block.textCross, block.textMain] = sideways
    ? [sizes.line, text + sizes.word]
    : [text, sizes.word];
}

/** Tags stand in one column, right of the longest word. */
function alignWords(blocks) {
  const leaves = blocks.filter((block) => block.text !== null);
  const longest = Math.max(...leaves.map((block) => block.textMain));
  const tags = leaves.filter((block) => block.isTag);
  const widest = Math.max(0, ...tags.map((block) => block.main));
  for (const block of leaves) block.textMain = longest;
  for (const block of tags) block.main = widest;
}

// Contours ----------------------------------------------------------------------------------------

/** Place what is under a block; its contour, from the words up to its top. */
function shape(block, sizes) {
  if (block.children.length === 0) return leafShape(block, sizes);
  const shapes = block.children.map((child) => shape(child, sizes));
  block.bottom = Math.max(...block.children.map((child) => child.top)) + sizes.rise;
  block.top = block.bottom + block.main;
  const bar = binAt(block.bottom - sizes.rise / 2);
  for (const contour of shapes) extend(contour, bar + 1, 0);
  const offsets = packed(shapes, sizes.gap);
  const middle = (offsets[0] + offsets.at(-1)) / 2;
  block.children.forEach((child, number) => {
    child.offset = offsets[number] - middle;
  });
  const whole = merged(shapes, offsets.map((offset) => offset - middle));
  extend(whole, binAt(block.top) + 1, block.cross / 2);
  return whole;
}

function leafShape(block, sizes) {
  block.bottom = block.textMain + (block.isFolded ? sizes.fold : 0);
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

function upright(height) {
  return {
    point: (cross, main) => [cross, height - MARGIN - main],
    rectangle: (cross, main, width, length) => ({
      x: cross - width / 2,
      y: height - MARGIN - main - length,
      width,
      height: length,
    }),
  };
}

function turned() {
  return {
    point: (cross, main) => [main + MARGIN, cross],
    rectangle: (cross, main, width, length) => ({
      x: main + MARGIN,
      y: cross - width / 2,
      width: length,
      height: width,
    }),
  };
}

function finished(block, sizes, turn) {
  const box = turn.rectangle(block.centre, block.bottom, block.cross, block.main);
  const height = box.height / block.nodes.length;
  return {
    isTag: block.isTag,
    isFolded: block.isFolded,
    nodes: block.nodes.map((node, number) => ({
      node,
      box: { ...box, y: box.y + number * height, height },
    })),
    text: block.text,
    textBox: block.text === null ? null
      : turn.rectangle(block.centre, 0, block.textCross, block.textMain),
    triangle: block.isFolded ? triangle(block, turn) : null,
    edges: block.children.map((child) => ({
      child: child.nodes[0],
      points: elbow(block, child, sizes, turn),
    })),
  };
}

function triangle(block, turn) {
  return [
    turn.point(block.centre, block.bottom),
    turn.point(block.centre - block.textCross / 2, block.textMain),
    turn.point(block.centre + block.textCross / 2, block.textMain),
  ];
}

function elbow(block, child, sizes, turn) {
  const bar = block.bottom - sizes.rise / 2;
  const ends = [turn.point(block.centre, block.bottom), turn.point(child.centre, child.top)];
  if (Math.abs(block.centre - child.centre) < 0.5) return ends;
  return [ends[0], turn.point(block.centre, bar), turn.point(child.centre, bar), ends[1]];
}
