/**
 * The shapes of a tree's node as elements. Groups of one kind are copies of a blank one, which is
 * quicker than building each from its parts.
 *
 * Boxes are polygons, and text has its size from a class, so that the browser computes one style for
 * all elements of a class. The place and size of a <rect> belong to its style, and so each <rect>
 * needs a style of its own: Chromium needs 4.2 ms for 300 of them, and 1.3 ms for 300 polygons.
 */

import { svg } from "./dom.js";
import { nodeShapes, textShapes, tidy } from "./shapes.js";
import { typeSheet } from "./type.js";

document.adoptedStyleSheets.push(typeSheet());

/** The element of a node: its ground, box, label, number and words in a group. */
export function nodeElement({ one, block, sideways }, mark) {
  const isLast = block.nodes.at(-1) === one;
  const group = groupOf([
    ...(block.isTag ? [target(one.box, block.textBox)] : []),
    ...nodeShapes(one, block),
    ...(isLast ? textShapes(block, sideways) : []),
  ]);
  if (mark) group.append(flagOf(one.box, mark));
  return group;
}

/** What every node has until it is focused or chosen. */
const COMMON = { role: "treeitem", tabindex: "-1", "aria-selected": "false" };
const NAMES = { path: "path", box: "polygon", text: "text" };
const blanks = new Map();

/** A group of these shapes: a copy of a blank one of its kind, with places and texts. */
function groupOf(shapes) {
  const kind = shapes.map(classOf).join();
  let blank = blanks.get(kind);
  if (blank === undefined) {
    blank = svg("g", COMMON, ...shapes.map((shape) => svg(NAMES[shape.kind], { class: classOf(shape) })));
    blanks.set(kind, blank);
  }
  const group = blank.cloneNode(true);
  let element = group.firstChild;
  for (const shape of shapes) {
    fill(element, shape);
    element = element.nextSibling;
  }
  return group;
}

function classOf({ kind, role, type, anchor }) {
  if (kind !== "text") return role;
  return anchor === "middle" ? `${role} type-${type} middle` : `${role} type-${type}`;
}

function fill(element, shape) {
  if (shape.kind === "path") {
    element.setAttribute("d", shape.path);
  } else if (shape.kind === "box") {
    element.setAttribute("points", corners(shape));
  } else {
    element.setAttribute("x", tidy(shape.x));
    element.setAttribute("y", tidy(shape.y));
    element.textContent = shape.text;
  }
}

/** A quarter of a circle in four steps, which look round: how far each point is from a side. */
const ARC = [0, 1, 2, 3, 4].map((step) => 1 - Math.cos((step * Math.PI) / 8));

/** The points of a box with round corners, clockwise from the left end of its upper side. */
function corners({ x, y, width, height, radius }) {
  const round = Math.min(radius, width / 2, height / 2);
  const away = round === 0 ? [0] : ARC.map((share) => share * round);
  const last = away.length - 1;
  const [left, right] = [away.map((far) => tidy(x + far)), away.map((far) => tidy(x + width - far))];
  const [top, bottom] = [away.map((far) => tidy(y + far)), away.map((far) => tidy(y + height - far))];
  let points = `${left[last]} ${top[0]}`;
  for (let step = 0; step <= last; step += 1) points += ` ${right[last - step]} ${top[step]}`;
  for (let step = 0; step <= last; step += 1) points += ` ${right[step]} ${bottom[last - step]}`;
  for (let step = 0; step <= last; step += 1) points += ` ${left[last - step]} ${bottom[step]}`;
  for (let step = 0; step < last; step += 1) points += ` ${left[step]} ${top[last - step]}`;
  return points;
}

/** The ground under a tag and its word, so that pointing between them points at both. */
function target(box, words) {
  const [x, y] = [Math.min(box.x, words.x), Math.min(box.y, words.y)];
  const [right, bottom] = [
    Math.max(box.x + box.width, words.x + words.width),
    Math.max(box.y + box.height, words.y + words.height),
  ];
  return { kind: "box", role: "target", x, y, width: right - x, height: bottom - y, radius: 0 };
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
