/**
 * The shapes of a tree's node as elements. Elements of one kind are copies of a blank one, which is
 * quicker than setting what they share.
 */

import { svg } from "./dom.js";
import { nodeShapes, textShapes, tidy } from "./shapes.js";
import { TYPE } from "./type.js";

/** The elements of a node: its ground, box, label, sign and words. */
export function nodeElements({ one, block, sideways }, mark) {
  const isLast = block.nodes.at(-1) === one;
  return [
    ...(block.isTag ? [targetOf(one.box, block.textBox)] : []),
    ...nodeShapes(one, block).map(element),
    ...(mark ? [flagOf(one.box, mark)] : []),
    ...(isLast ? textShapes(block, sideways).map(element) : []),
  ];
}

const blanks = new Map();

/** A shape as an element: a copy of a blank one of its kind, with its place and text. */
function element(shape) {
  const key = `${shape.role} ${shape.anchor}`;
  let blank = blanks.get(key);
  if (blank === undefined) {
    blank = blankOf(shape);
    blanks.set(key, blank);
  }
  const made = blank.cloneNode();
  if (shape.kind === "path") {
    made.setAttribute("d", shape.path);
    return made;
  }
  made.setAttribute("x", tidy(shape.x));
  made.setAttribute("y", tidy(shape.y));
  if (shape.kind === "box") {
    made.setAttribute("width", tidy(shape.width));
    made.setAttribute("height", tidy(shape.height));
  } else {
    made.textContent = shape.text;
  }
  return made;
}

function blankOf(shape) {
  if (shape.kind === "path") return svg("path", { class: shape.role });
  if (shape.kind === "box") return svg("rect", { class: shape.role, rx: shape.radius });
  const { size, weight } = TYPE[shape.type];
  return svg("text", {
    class: shape.role, "text-anchor": shape.anchor, "font-size": size, "font-weight": weight,
  });
}

/** The ground under a tag and its word, so that pointing between them points at both. */
function targetOf(box, words) {
  const [x, y] = [Math.min(box.x, words.x), Math.min(box.y, words.y)];
  const [right, bottom] = [
    Math.max(box.x + box.width, words.x + words.width),
    Math.max(box.y + box.height, words.y + words.height),
  ];
  return svg("rect", { class: "target", x, y, width: right - x, height: bottom - y });
}

/** A small sign at the corner of a node, so that no mark is a colour alone. */
function flagOf({ x, y, width }, { sign }) {
  return svg(
    "g",
    { class: "flag" },
    svg("circle", { cx: x + width - 1, cy: y + 1, r: 6.5 }),
    svg("text", { x: x + width - 1, y: y + 5, "text-anchor": "middle", "font-size": 11 }, sign),
  );
}
