/**
 * Turns a placed tree into simple shapes with roles. The code that draws decides how roles look.
 *
 *     { kind: "path", role, path }                          path in SVG's notation
 *     { kind: "box", role, level, x, y, width, height, radius }   level as in doubt.js
 *     { kind: "text", role, x, y, anchor, text, type }      y of the baseline; type as in type.js
 */

import { levelOf, numberOf } from "./doubt.js";
import { BESIDE } from "./layout.js";
import { widthOf } from "./type.js";

const ROUND = 6;
const RADIUS = 4;
const GAUGE = 2;

/** The lines between a block and its children, one shape for each. */
export function edgeShapes(block) {
  return block.edges.map(({ points }) => line("edge", rounded(points)));
}

/** A node's label in its box; where it is in doubt, its number and a gauge as long as it is probable. */
export function nodeShapes({ node, box }, block) {
  const type = block.isTag ? "tag" : "label";
  const level = levelOf(node.probability);
  const number = numberOf(node.probability);
  const label = widthOf(node.label, type);
  const beside = number === "" ? 0 : BESIDE + widthOf(number, "number");
  const x = box.x + (box.width - label - beside) / 2;
  const y = box.y + box.height / 2 + (block.isTag ? 4 : 4.5) - (number === "" ? 0 : 1);
  const shapes = [
    { kind: "box", role: "box", level, ...box, radius: RADIUS },
    { kind: "text", role: type, type, text: node.label, x, y, anchor: "start" },
  ];
  if (number !== "") {
    const place = { x: x + label + BESIDE, y, anchor: "start" };
    shapes.push({ kind: "text", role: "number", type: "number", text: number, ...place });
    shapes.push(gauge(box, node.probability, level));
  }
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
  if (block.triangle === null) return [words];
  return [line("triangle", `M${block.triangle.map(at).join("L")}Z`), words];
}

/** All shapes of a placed tree, edges first. */
export function* shapesOf({ blocks, sideways }) {
  for (const block of blocks) yield* edgeShapes(block);
  for (const block of blocks) {
    for (const one of block.nodes) yield* nodeShapes(one, block);
    yield* textShapes(block, sideways);
  }
}

function gauge({ x, y, width, height }, share, level) {
  const full = width - 2 * RADIUS;
  return {
    kind: "box",
    role: "gauge",
    level,
    x: x + RADIUS,
    y: y + height - GAUGE - 1,
    width: full * Math.min(1, Math.max(0, share)),
    height: GAUGE,
    radius: GAUGE / 2,
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

/** A number of pixels, no finer than anybody sees. */
export function tidy(number) {
  return Math.round(number * 100) / 100;
}
