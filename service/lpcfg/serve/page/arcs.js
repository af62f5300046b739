/**
 * Places dependency arcs over words: each as low as the arcs under it let it.
 */

import { numberOf } from "./doubt.js";
import { widthOf } from "./type.js";

const GAP = 18;
const MARGIN = 16;
const STEP = 30;
const TAGS = 38;
/** Pixels between arcs that end at one word. */
const BESIDE = 7;

/**
 * Place the tokens of a dependency tree and its arcs.
 *
 * Tokens have x; arcs have their ends x1 (head) and x2, the y of their top, and a label. The arc of
 * the root is a line from above: it has no x1.
 */
export function placeArcs(tokens) {
  const arcs = tokens.map((token, number) => ({
    from: token.head - 1,
    to: number,
    token,
    label: [token.relation, numberOf(token.probability)].filter(Boolean).join(" "),
  }));
  const levels = levelsOf(arcs.filter((arc) => arc.from >= 0));
  const places = wordPlaces(tokens, arcs);
  const highest = Math.max(1, ...levels.values());
  const base = MARGIN + (highest + 1) * STEP;
  return {
    width: places.width,
    height: base + TAGS + MARGIN,
    base,
    words: tokens.map((token, number) => ({ token, number, x: places.x[number] })),
    arcs: arcs.map((arc) => placed(arc, levels, places, base)),
  };
}

function placed(arc, levels, { x }, base) {
  if (arc.from < 0) return { ...arc, x2: x[arc.to], y: MARGIN + 10, isRoot: true };
  const side = Math.sign(arc.to - arc.from);
  return {
    ...arc,
    x1: x[arc.from] + side * BESIDE,
    x2: x[arc.to] - side * BESIDE,
    y: base - levels.get(arc) * STEP,
    isRoot: false,
  };
}

/** An arc stands one level over the highest arc within its words. */
function levelsOf(arcs) {
  const span = ({ from, to }) => [Math.min(from, to), Math.max(from, to)];
  const sorted = [...arcs].sort((a, b) => Math.abs(a.from - a.to) - Math.abs(b.from - b.to));
  const heights = [];
  const levels = new Map();
  for (const arc of sorted) {
    const [left, right] = span(arc);
    let level = 1;
    for (let gap = left; gap < right; gap += 1) level = Math.max(level, (heights[gap] ?? 0) + 1);
    for (let gap = left; gap < right; gap += 1) heights[gap] = level;
    levels.set(arc, level);
  }
  return levels;
}

/** Words stand so far apart that the label of the arc between neighbours fits. */
function wordPlaces(tokens, arcs) {
  const widths = tokens.map((token) => Math.max(widthOf(token.text, "word"), widthOf(token.tag, "tag")));
  const x = [];
  let at = MARGIN;
  widths.forEach((width, number) => {
    const own = arcs.filter(({ from, to }) => from >= 0 && Math.abs(from - to) === 1
      && Math.max(from, to) === number);
    const middle = Math.max(0, ...own.map((arc) => widthOf(arc.label, "tag") + 2 * BESIDE + 12));
    const least = number === 0 ? 0 : x[number - 1] + middle;
    x.push(Math.max(at + width / 2, least));
    at = x[number] + width / 2 + GAP;
  });
  return { x, width: at - GAP + MARGIN };
}
