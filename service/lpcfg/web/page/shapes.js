/**
 * Turns a placed tree into simple shapes with roles. The code that draws decides how roles look.
 *
 *     { kind: "path", role, path }                          path in SVG's notation
 *     { kind: "box", role, x, y, width, height, radius, share }
 *     { kind: "text", role, x, y, anchor, text, type }      y of the baseline; type as in type.js
 */

import { short } from "./numbers.js";

const ROUND = 6;
const RADIUS = 4;
const GAUGE = 2;

/** The lines between a block and its children, one shape for each. */
export function edgeShapes(block) {
  return block.edges.map(({ points }) => line("edge", rounded(points)));
}

/** A node's label in its box, its number, and a gauge as long as it is probable. */
export function nodeShapes({ node, box }, block, sideways) {
  const type = block.isTag ? "tag" : "label";
  const middle = box.x + box.width / 2;
  const share = node.probability ?? null;
  const shapes = [{ kind: "box", role: "box", ...box, radius: RADIUS, share }];
  const label = { kind: "text", role: type, type, text: node.label };
  const number = { kind: "text", role: "number", type: "number", text: short(share) };
  if (sideways) {
    const y = box.y + box.height / 2 + 4;
    shapes.push({ ...label, x: box.x + 6, y, anchor: "start" });
    shapes.push({ ...number, x: box.x + box.width - 6, y, anchor: "end" });
  } else {
    shapes.push({ ...label, x: middle, y: box.y + (block.isTag ? 12 : 14.5), anchor: "middle" });
    shapes.push({ ...number, x: middle, y: box.y + box.height - 7, anchor: "middle" });
  }
  if (share !== null) shapes.push(gauge(box, share));
  return shapes;
}

/** The word of a leaf, or the words of a folded node under a triangle; nothing elsewhere. */
export function textShapes(block, sideways) {
  if (block.text === null) return [];
  const { x, y, width, height } = block.textBox;
  const words = {
    kind: "text",
    role: block.isFolded ? "folded-words" : "word",
    type: "word",
    text: block.text,
    x: sideways ? x : x + width / 2,
    y: y + height / 2 + (sideways ? 5 : 6),
    anchor: sideways ? "start" : "middle",
  };
  if (!block.isFolded) return [words];
  return [line("triangle", `M${block.triangle.map(at).join("L")}Z`), words];
}

/** All shapes of a placed tree, edges first. */
export function* shapesOf({ blocks, sideways }) {
  for (const block of blocks) yield* edgeShapes(block);
  for (const block of blocks) {
    for (const one of block.nodes) yield* nodeShapes(one, block, sideways);
    yield* textShapes(block, sideways);
  }
}

function gauge({ x, y, width, height }, share) {
  const full = width - 2 * RADIUS;
  return {
    kind: "box",
    role: "gauge",
    x: x + RADIUS,
    y: y + height - GAUGE - 1,
    width: full * Math.min(1, Math.max(0, share)),
    height: GAUGE,
    radius: GAUGE / 2,
    share: null,
  };
}

function line(role, path) {
  return { kind: "path", role, path };
}

/** A path through the points, its corners rounded. */
function rounded(points) {
  let path = `M${at(points[0])}`;
  for (let number = 1; number < points.length - 1; number += 1) {
    const [before, corner, after] = points.slice(number - 1, number + 2);
    path += `L${at(towards(corner, before))}Q${at(corner)} ${at(towards(corner, after))}`;
  }
  return `${path}L${at(points.at(-1))}`;
}

/** The point up to ROUND away from a corner, at most half way. */
function towards(corner, other) {
  const [dx, dy] = [other[0] - corner[0], other[1] - corner[1]];
  const length = Math.hypot(dx, dy);
  const part = length === 0 ? 0 : Math.min(ROUND, length / 2) / length;
  return [corner[0] + dx * part, corner[1] + dy * part];
}

function at([x, y]) {
  return `${tidy(x)} ${tidy(y)}`;
}

function tidy(number) {
  return Math.round(number * 100) / 100;
}
