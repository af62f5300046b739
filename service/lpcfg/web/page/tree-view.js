/**
 * One tree on the screen: drawn, folded and unfolded, walked by keys, dragged and zoomed.
 *
 * The drawing stands in a box that scrolls, so that fingers, wheels and scroll bars work as they
 * do everywhere.
 */

import { html, svg } from "./dom.js";
import { layout } from "./layout.js";
import { exact, short, wordRange } from "./numbers.js";
import { edgeShapes, nodeShapes, textShapes } from "./shapes.js";
import { isLitSpan } from "./spotlight.js";
import { TYPE } from "./type.js";

const CERTAIN = 0.5;
const DRAGGED = 4;
const STEP = 1.25;
const SMALLEST = 0.25;
const LARGEST = 3;
/** The smallest automatic scale: smaller letters are hard to read. */
const READABLE = 0.75;
/** The size of a tree that must be scrolled in any case. */
const COMFORTABLE = 0.85;

export class TreeView {
  #nodes = [];
  #words = [];
  #marks = new Map();
  #folded = new Set();
  #sideways = false;
  #zoom = 1;
  #drawing = null;
  #groups = new Map();
  #current = 0;
  #spot = null;
  #onSpot;
  #onRead;

  /**
   * @param label   what the drawing is, for those who do not see it
   * @param onSpot  called with the spot that the reader points at
   * @param onRead  called with words about the node that the reader points at
   */
  constructor({ label, onSpot = () => {}, onRead = () => {} }) {
    this.#onSpot = onSpot;
    this.#onRead = onRead;
    this.picture = svg("svg", { class: "tree", role: "tree", "aria-label": label });
    this.element = html("div", { class: "canvas" }, this.picture);
    this.#listen();
  }

  /** Draw a tree, given as its nodes; `marks` says of nodes, by id, how they stand out. */
  show(nodes, { marks = new Map(), sideways = false, folded = new Set() } = {}) {
    this.#nodes = nodes;
    this.#words = nodes.filter((node) => node.word !== null).map((node) => node.word);
    this.#marks = marks;
    this.#sideways = sideways;
    this.#folded = new Set(folded);
    this.#current = 0;
    this.#draw();
    this.fit();
  }

  /** How nodes stand out, by id. */
  get marks() {
    return this.#marks;
  }

  /** The ids of folded nodes. */
  get folded() {
    return this.#folded;
  }

  /** The tree as it is placed now. */
  get drawing() {
    return this.#drawing;
  }

  /** Highlight what belongs to a spot. */
  light(spot) {
    this.#spot = spot;
    for (const [id, group] of this.#groups) {
      group.classList.toggle("lit", isLitSpan(spot, this.#nodes[id]));
    }
  }

  /** Make the tree as large as fits, but readable. */
  fit() {
    const room = this.element.clientWidth;
    const scale = Math.min(1, room > 0 ? room / this.#drawing.width : 1);
    this.#resize(scale < READABLE ? COMFORTABLE : scale);
  }

  zoomIn() {
    this.#resize(this.#zoom * STEP);
  }

  zoomOut() {
    this.#resize(this.#zoom / STEP);
  }

  // Drawing ---------------------------------------------------------------------------------------

  #draw() {
    this.#drawing = layout(this.#nodes[0], { sideways: this.#sideways, folded: this.#folded });
    const { width, height, blocks, sideways } = this.#drawing;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.classList.toggle("sideways", sideways);
    this.#groups.clear();
    const edges = blocks.flatMap((block) => edgeShapes(block).map(element));
    const groups = blocks.flatMap((block) =>
      block.nodes.map((one) => this.#group(one, block, sideways)));
    this.picture.replaceChildren(svg("g", { role: "none" }, ...edges), ...groups);
    if (!this.#groups.has(this.#current)) this.#current = 0;
    this.#groups.get(this.#current).setAttribute("tabindex", "0");
    this.light(this.#spot);
  }

  #group(one, block, sideways) {
    const { node } = one;
    const isLast = block.nodes.at(-1) === one;
    const mark = this.#marks.get(node.id);
    const group = svg("g", {
      class: ["node", doubtful(node) && "doubtful", mark?.kind].filter(Boolean).join(" "),
      role: "treeitem",
      tabindex: "-1",
      "aria-level": depthOf(node) + 1,
      "aria-expanded": node.word === null ? String(!this.#folded.has(node.id)) : null,
      "aria-label": this.#description(node),
      "data-node": node.id,
      "data-label": node.label,
      "data-start": node.start,
      "data-end": node.end,
    });
    group.append(...nodeShapes(one, block, sideways).map(element));
    if (mark) group.append(flagOf(one.box, mark));
    if (isLast) group.append(...textShapes(block, sideways).map(element));
    this.#groups.set(node.id, group);
    return group;
  }

  #description(node) {
    const words = this.#textOf(node);
    const share = short(node.probability) === "" ? "" : `, probability ${exact(node.probability)}`;
    const mark = this.#marks.get(node.id);
    return `${node.label}, ${words}${share}${mark ? `, ${mark.words}` : ""}`;
  }

  #textOf({ start, end }) {
    return this.#words.slice(start, end).join(" ");
  }

  #resize(zoom) {
    const box = this.element;
    const before = this.#zoom;
    this.#zoom = Math.min(LARGEST, Math.max(SMALLEST, zoom));
    const centre = box.scrollLeft + box.clientWidth / 2;
    this.picture.setAttribute("width", this.#drawing.width * this.#zoom);
    this.picture.setAttribute("height", this.#drawing.height * this.#zoom);
    box.scrollLeft = (centre * this.#zoom) / before - box.clientWidth / 2;
  }

  // Interaction -----------------------------------------------------------------------------------

  #listen() {
    const { picture, element: box } = this;
    picture.addEventListener("pointerover", (event) => this.#point(nodeAt(event)));
    picture.addEventListener("pointerleave", () => this.#point(null));
    picture.addEventListener("focusin", (event) => this.#point(nodeAt(event)));
    picture.addEventListener("focusout", () => this.#point(null));
    picture.addEventListener("click", (event) => this.#toggle(nodeAt(event)));
    picture.addEventListener("keydown", (event) => this.#key(event));
    box.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    dragToScroll(box);
  }

  #point(id) {
    const node = id === null ? null : this.#nodes[id];
    this.#onSpot(node && {
      start: node.start, end: node.end, part: node.word === null ? "span" : "word",
    });
    this.#onRead(node && {
      label: node.label,
      where: wordRange(node.start, node.end),
      words: this.#textOf(node),
      probability: node.probability ?? null,
      mark: this.#marks.get(id)?.words ?? null,
    });
  }

  #toggle(id) {
    if (id === null || this.#nodes[id].word !== null) return;
    const had = this.picture.contains(document.activeElement);
    if (!this.#folded.delete(id)) this.#folded.add(id);
    this.#current = id;
    this.#draw();
    this.#resize(this.#zoom);
    if (had) this.#groups.get(id).focus({ preventScroll: true });
  }

  #key(event) {
    const node = this.#nodes[this.#current];
    const steps = this.#sideways
      ? { ArrowRight: parent, ArrowLeft: child, ArrowUp: before, ArrowDown: after }
      : { ArrowUp: parent, ArrowDown: child, ArrowLeft: before, ArrowRight: after };
    const actions = {
      Enter: () => this.#toggle(this.#current),
      " ": () => this.#toggle(this.#current),
      Home: () => this.#go(this.#nodes[0]),
      End: () => this.#go(this.#nodes.at(-1)),
      "+": () => this.zoomIn(),
      "-": () => this.zoomOut(),
      0: () => this.fit(),
    };
    const step = steps[event.key];
    const action = step ? () => this.#go(step(node)) : actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  /** Focus a node; of one that is folded away, the node it is folded into. */
  #go(node) {
    if (!node) return;
    let seen = node;
    while (!this.#groups.has(seen.id)) seen = seen.parent;
    this.#groups.get(this.#current).setAttribute("tabindex", "-1");
    this.#current = seen.id;
    const group = this.#groups.get(seen.id);
    group.setAttribute("tabindex", "0");
    group.focus({ preventScroll: true });
    group.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#resize(this.#zoom * Math.exp(-event.deltaY / 300));
  }
}

// Shapes as elements ------------------------------------------------------------------------------

function element(shape) {
  if (shape.kind === "path") return svg("path", { class: shape.role, d: shape.path });
  if (shape.kind === "box") {
    const { x, y, width, height, radius, role } = shape;
    const box = svg("rect", { class: role, x, y, width, height, rx: radius });
    if (shape.share !== null) box.style.setProperty("--share", `${shape.share * 100}%`);
    return box;
  }
  const { size, weight } = TYPE[shape.type];
  return svg("text", {
    class: shape.role,
    x: shape.x,
    y: shape.y,
    "text-anchor": shape.anchor,
    "font-size": size,
    "font-weight": weight,
  }, shape.text);
}

/** A small sign at the corner of a node, so that no mark is a colour alone. */
function flagOf({ x, y, width }, { sign }) {
  return svg(
    "g",
    { class: "flag" },
    svg("circle", { cx: x + width, cy: y, r: 8 }),
    svg("text", { x: x + width, y: y + 5, "text-anchor": "middle", "font-size": 14 }, sign),
  );
}

function doubtful(node) {
  return node.probability !== null && node.probability !== undefined && node.probability < CERTAIN;
}

// Walking -----------------------------------------------------------------------------------------

function depthOf(node) {
  return node.parent === null ? 0 : 1 + depthOf(node.parent);
}

function parent(node) {
  return node.parent;
}

function child(node) {
  return node.children[0];
}

function before(node) {
  return beside(node, -1);
}

function after(node) {
  return beside(node, 1);
}

/** The next child of the parent; at the last one, of the parent's parent, and so on. */
function beside(node, step) {
  for (let at = node; at.parent !== null; at = at.parent) {
    const found = at.parent.children[at.parent.children.indexOf(at) + step];
    if (found) return found;
  }
  return null;
}

function nodeAt(event) {
  const group = event.target.closest("[data-node]");
  return group === null ? null : Number(group.dataset.node);
}

// Dragging ----------------------------------------------------------------------------------------

/** Drag what is in a box with the mouse; fingers scroll it anyway. */
function dragToScroll(box) {
  let from = null;
  let moved = false;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    from = { x: event.clientX, left: box.scrollLeft, y: event.clientY, top: box.scrollTop };
    moved = false;
  });
  box.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!moved && Math.hypot(dx, dy) < DRAGGED) return;
    if (!moved) box.setPointerCapture(event.pointerId);
    moved = true;
    box.scrollLeft = from.left - dx;
    box.scrollTop = from.top - dy;
  });
  const end = () => {
    from = null;
  };
  box.addEventListener("pointerup", end);
  box.addEventListener("pointercancel", end);
  box.addEventListener("click", (event) => {
    if (moved) event.stopPropagation();
    moved = false;
  }, { capture: true });
}
