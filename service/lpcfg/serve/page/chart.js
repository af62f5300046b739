/**
 * The chart of a sentence: spans with their labels, and the place of each in the triangle.
 *
 * Words stand in a row below; the cell of words [start, end) stands over their middle, the higher
 * the longer the span.
 */

import { cross } from "./analysis.js";

/**
 * The cells of the service's marginals, outer ones first: { start, end, expected, labels }.
 * `labels` are the rivals over the span, the most probable first.
 */
export function cellsOf(marginals) {
  const labels = new Map();
  for (const span of marginals.spans) {
    const key = keyOf(span);
    if (!labels.has(key)) labels.set(key, []);
    labels.get(key).push({ label: span.label, probability: span.probability });
  }
  return marginals.cells.map(({ start, end, expected }) => ({
    start,
    end,
    expected,
    labels: (labels.get(keyOf({ start, end })) ?? []).sort(
      (a, b) => b.probability - a.probability,
    ),
  }));
}

/** The cells that are at least as likely as the threshold. */
export function visible(cells, threshold) {
  return cells.filter((cell) => shareOf(cell) >= threshold);
}

/** Return the probability that the span is a constituent: at most 1, even for chains. */
export function shareOf(cell) {
  return Math.min(1, cell.expected);
}

/**
 * The probability to show for a span: the greater one of its own and its likeliest label's. A label
 * can be likelier than its span, because labels are calibrated and the count of a cell is not.
 */
export function toldShareOf(cell) {
  return Math.max(shareOf(cell), cell.labels[0]?.probability ?? 0);
}

/** The cells that cross a span, the likeliest first. */
export function crossing(cells, span) {
  return cells.filter((cell) => cross(cell, span)).sort((a, b) => b.expected - a.expected);
}

/** The span as a key of maps. */
export function keyOf({ start, end }) {
  return `${start} ${end}`;
}

/**
 * The cell one step from another: to the nearest of the same length at the left or right, or to
 * the nearest shorter or longer one. Null where there is none.
 */
export function neighbour(cells, from, direction) {
  const middle = ({ start, end }) => start + end;
  const length = ({ start, end }) => end - start;
  const across = (cell) => middle(cell) - middle(from);
  const along = (cell) => length(cell) - length(from);
  const [ahead, distance] = {
    left: [(cell) => along(cell) === 0 && across(cell) < 0, (cell) => -across(cell)],
    right: [(cell) => along(cell) === 0 && across(cell) > 0, across],
    up: [(cell) => along(cell) > 0, (cell) => 2 * Math.abs(across(cell)) + along(cell)],
    down: [(cell) => along(cell) < 0, (cell) => 2 * Math.abs(across(cell)) - along(cell)],
  }[direction];
  return cells.filter(ahead).reduce(
    (best, cell) => (best === null || distance(cell) < distance(best) ? cell : best),
    null,
  );
}

/** The lines from parents to children of a tree, between cells; a chain is one place. */
export function treeLines(nodes) {
  return nodes
    .filter((node) => node.word === null && node.parent !== null)
    .filter((node) => keyOf(node) !== keyOf(node.parent))
    .map((node) => ({ from: node.parent, to: node }));
}
