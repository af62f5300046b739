/**
 * One tree on the screen: drawn, folded, walked by keys, zoomed, and its nodes and words chosen.
 *
 * The drawing stands in a box that scrolls, so that fingers, wheels and scroll bars work as they
 * do everywhere. A mouse that drags from word to word chooses them; elsewhere it moves the drawing.
 */

import { levelOf, sureness } from "./doubt.js";
import { html, svg } from "./dom.js";
import { meaningOf } from "./glossary.js";
import { layout } from "./layout.js";
import { Minimap } from "./minimap.js";
import { dragToScroll } from "./drag.js";
import { outline } from "./outline.js";
import { edgeShapes, nodeShapes, textShapes } from "./shapes.js";
import { isLitSpan } from "./spotlight.js";
import { TYPE } from "./type.js";
import * as walk from "./walk.js";

const STEP = 1.25;
const SMALLEST = 0.1;
const LARGEST = 3;
/** The smallest scale that a tree opens in: smaller letters are hard to read. */
const READABLE = 0.68;
/** The largest scale that a tree opens in. */
const ROOMY = 1.5;
/** The scale of a tree that must be scrolled in any case. */
const COMFORTABLE = 0.8;
/** In a box narrower than this a tree that does not fit opens as an outline. */
const NARROW = 640;

export class TreeView {
  #nodes = [];
  #words = [];
  #marks = new Map();
  #folded = new Set();
  #turned = null;
  #zoom = 1;
  #drawing = null;
  #groups = new Map();
  #current = 0;
  #chosen = null;
  #spot = null;
  #minimap;
  #listeners;

  /**
   * @param label     what the drawing is, for those who do not see it
   * @param onSpot    called with the spot that the reader points at
   * @param onChoose  called with a chosen node or { start, end } of words, or null
   */
  constructor({ label, onSpot = () => {}, onChoose = () => {} }) {
    this.#listeners = { onSpot, onChoose };
    this.picture = svg("svg", { class: "tree", role: "tree", "aria-label": label });
    this.box = html("div", { class: "canvas" }, this.picture);
    this.#minimap = new Minimap(this.box);
    this.element = html("div", { class: "pane" }, this.box, this.#minimap.element);
    this.#listen();
  }

  /**
   * Draw a tree, given as its nodes.
   *
   * @param marks   by id, how nodes stand out
   * @param turned  true: an outline, false: upright, null: as it fits
   */
  show(nodes, { marks = new Map(), turned = null, folded = new Set() } = {}) {
    this.#nodes = nodes;
    this.#words = nodes.filter((node) => node.word !== null);
    this.#marks = marks;
    this.#turned = turned;
    this.#folded = new Set(folded);
    this.#chosen = null;
    this.#current = 0;
    this.#draw();
    this.open();
  }

  /** How nodes stand out, by id. */
  get marks() {
    return this.#marks;
  }

  /** Let other nodes stand out; nothing else changes. */
  mark(marks) {
    const had = this.picture.contains(document.activeElement);
    this.#marks = marks;
    this.#draw();
    if (had) this.#groups.get(this.#current).focus({ preventScroll: true });
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

  /** Mark what is chosen: a node, { start, end } of words, or nothing (null). */
  choose(chosen) {
    this.#chosen = chosen;
    const inWords = (node) => chosen !== null && chosen.id === undefined && node.word !== null
      && chosen.start <= node.start && node.end <= chosen.end;
    for (const [id, group] of this.#groups) {
      const node = this.#nodes[id];
      const isChosen = chosen !== null && (chosen.id === id || inWords(node));
      group.classList.toggle("chosen", isChosen);
      group.setAttribute("aria-selected", String(isChosen));
    }
  }

  /** Open the tree: as large as fits and readable, with its root in the middle. */
  open() {
    const { sideways, width } = this.#drawing;
    const scale = this.#fitting();
    if (sideways) this.#resize(Math.min(1, Math.max(READABLE, this.#room().width / width)));
    else this.#resize(scale < READABLE ? COMFORTABLE : scale);
    this.#centre(this.#nodes[0], true);
  }

  /** Make the whole tree visible. */
  fit() {
    this.#resize(this.#fitting());
  }

  zoomIn() {
    this.#resize(this.#zoom * STEP);
  }

  zoomOut() {
    this.#resize(this.#zoom / STEP);
  }

  /** Move a node to the middle of the box, unfolding what hides it. */
  reveal(node) {
    for (let at = node.parent; at !== null; at = at.parent) this.#folded.delete(at.id);
    if (!this.#groups.has(node.id)) this.#draw();
    this.#resize(this.#zoom);
    this.#centre(node);
  }

  /** Fold or unfold a node. */
  toggle(id) {
    if (id === null || this.#nodes[id].word !== null) return;
    const had = this.picture.contains(document.activeElement);
    if (!this.#folded.delete(id)) this.#folded.add(id);
    this.#current = id;
    this.#draw();
    this.#resize(this.#zoom);
    if (had) this.#groups.get(id).focus({ preventScroll: true });
  }

  // Drawing ---------------------------------------------------------------------------------------

  #draw() {
    this.#drawing = this.#placed();
    const { width, height, blocks, sideways } = this.#drawing;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.classList.toggle("outline", sideways);
    this.#groups.clear();
    const edges = blocks.flatMap(edgeShapes);
    const groups = blocks.flatMap((block) =>
      block.nodes.map((one) => this.#group(one, block, sideways)));
    this.picture.replaceChildren(svg("g", { role: "none" }, ...edges.map(element)), ...groups);
    if (!this.#groups.has(this.#current)) this.#current = 0;
    this.#groups.get(this.#current).setAttribute("tabindex", "0");
    this.#minimap.show(this.#drawing, edges);
    if (this.#spot !== null) this.light(this.#spot);
    if (this.#chosen !== null) this.choose(this.#chosen);
  }

  #placed() {
    const [root] = this.#nodes;
    if (this.#turned) return outline(root, this.#folded);
    const upright = layout(root, this.#folded);
    const room = this.#room();
    const isTight = room.width > 0 && room.width < NARROW && scaleIn(upright, room) < READABLE;
    return this.#turned === null && isTight ? outline(root, this.#folded) : upright;
  }

  #group(one, block, sideways) {
    const { node } = one;
    const mark = this.#marks.get(node.id);
    const siblings = node.parent?.children ?? [node];
    const group = svg("g", {
      class: ["node", levelOf(node.probability), mark?.kind].filter(Boolean).join(" "),
      role: "treeitem",
      tabindex: "-1",
      "aria-level": node.depth + 1,
      "aria-setsize": siblings.length,
      "aria-posinset": node.place + 1,
      "aria-expanded": node.word === null ? String(!this.#folded.has(node.id)) : null,
      "aria-selected": "false",
      "aria-label": this.#description(node),
      "data-node": node.id,
      "data-label": node.label,
      "data-start": node.start,
      "data-end": node.end,
    });
    if (block.isTag) group.append(targetOf(one.box, block.textBox));
    group.append(...nodeShapes(one, block).map(element));
    if (mark) group.append(flagOf(one.box, mark));
    if (block.nodes.at(-1) === one) group.append(...textShapes(block, sideways).map(element));
    this.#groups.set(node.id, group);
    return group;
  }

  #description(node) {
    const known = node.probability !== null && node.probability !== undefined;
    return [
      meaningOf(node.label) === null ? node.label : `${node.label}: ${meaningOf(node.label)}`,
      this.#words.slice(node.start, node.end).map((leaf) => leaf.word).join(" "),
      known ? sureness(node.probability) : null,
      this.#marks.get(node.id)?.words,
    ].filter(Boolean).join(", ");
  }

  // Size and place --------------------------------------------------------------------------------

  #room() {
    const style = getComputedStyle(this.box);
    return { width: this.box.clientWidth, height: parseFloat(style.maxHeight) || Infinity };
  }

  #fitting() {
    return scaleIn(this.#drawing, this.#room());
  }

  #resize(zoom) {
    const { box } = this;
    const before = this.#zoom;
    this.#zoom = Math.min(LARGEST, Math.max(SMALLEST, zoom));
    const [x, y] = [box.scrollLeft + box.clientWidth / 2, box.scrollTop + box.clientHeight / 2];
    this.picture.setAttribute("width", this.#drawing.width * this.#zoom);
    this.picture.setAttribute("height", this.#drawing.height * this.#zoom);
    box.scrollLeft = (x * this.#zoom) / before - box.clientWidth / 2;
    box.scrollTop = (y * this.#zoom) / before - box.clientHeight / 2;
    this.#minimap.follow();
  }

  /** Scroll to a node; an opening tree shows the side at which its root is. */
  #centre(node, opening = false) {
    const { box } = this;
    const place = this.#boxOf(node);
    const x = (place.x + place.width / 2) * this.#zoom - box.clientWidth / 2;
    const y = (place.y + place.height / 2) * this.#zoom - box.clientHeight / 2;
    const { sideways } = this.#drawing;
    box.scrollLeft = opening && sideways ? 0 : x;
    box.scrollTop = opening ? 0 : y;
    this.#minimap.follow();
  }

  #boxOf(node) {
    for (const { nodes } of this.#drawing.blocks) {
      const found = nodes.find((one) => one.node === node);
      if (found) return found.box;
    }
    throw new Error(`node ${node.id} is not drawn`);
  }

  // Interaction -----------------------------------------------------------------------------------

  #listen() {
    const { picture, box } = this;
    picture.addEventListener("pointerover", (event) => this.#point(nodeAt(event.target)));
    picture.addEventListener("pointerleave", () => this.#point(null));
    picture.addEventListener("focusin", (event) => {
      const id = nodeAt(event.target);
      if (id !== null) this.#move(this.#nodes[id]);
      this.#point(id);
    });
    picture.addEventListener("focusout", () => this.#point(null));
    picture.addEventListener("click", (event) => this.#click(nodeAt(event.target)));
    picture.addEventListener("dblclick", (event) => this.toggle(nodeAt(event.target)));
    picture.addEventListener("keydown", (event) => this.#key(event));
    box.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    dragToScroll(box, (event) => this.#dragsWords(event));
  }

  #point(id) {
    const node = id === null ? null : this.#nodes[id];
    this.#listeners.onSpot(node && {
      start: node.start, end: node.end, part: node.word === null ? "span" : "word",
    });
  }

  #click(id) {
    if (id !== null) this.#move(this.#nodes[id]);
    this.#tell(id === null ? null : this.#nodes[id]);
  }

  #tell(chosen) {
    this.choose(chosen);
    this.#listeners.onChoose(chosen);
  }

  /** Take a drag that begins at a word: it chooses all words up to where it ends. */
  #dragsWords(event) {
    const from = this.#wordAt(event);
    if (from === null) return null;
    let last = from;
    return {
      move: (next) => {
        const under = document.elementFromPoint(next.clientX, next.clientY);
        last = under === null ? last : this.#wordAt({ target: under }) ?? last;
        this.choose(between(from, last));
      },
      end: () => {
        const words = between(from, last);
        this.#tell(from === last ? from : words);
      },
    };
  }

  #wordAt({ target }) {
    const id = nodeAt(target);
    return id === null || this.#nodes[id].word === null ? null : this.#nodes[id];
  }

  #key(event) {
    const node = this.#nodes[this.#current];
    const steps = this.#drawing.sideways
      ? { ArrowLeft: walk.parent, ArrowRight: walk.child, ArrowUp: walk.before, ArrowDown: walk.after }
      : { ArrowUp: walk.parent, ArrowDown: walk.child, ArrowLeft: walk.before, ArrowRight: walk.after };
    const ends = this.#drawing.sideways ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const actions = {
      Enter: () => this.#tell(node),
      " ": () => this.toggle(this.#current),
      Home: () => this.#go(this.#nodes[0]),
      End: () => this.#go(this.#nodes.at(-1)),
      Escape: () => this.#tell(null),
      "+": () => this.zoomIn(),
      "-": () => this.zoomOut(),
      0: () => this.fit(),
    };
    const step = steps[event.key];
    let action = step ? () => this.#go(step(node)) : actions[event.key];
    if (event.shiftKey && ends.includes(event.key)) {
      action = () => this.#stretch(event.key === ends[1] ? 1 : -1);
    }
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  /** Choose one word more, or one less, than are chosen now. */
  #stretch(step) {
    const { start, end } = this.#chosen ?? this.#nodes[this.#current];
    const last = Math.min(this.#words.length, Math.max(start + 1, end + step));
    this.#tell({ start, end: last });
  }

  /** Focus a node; of one that is folded away, the node it is folded into. */
  #go(node) {
    if (!node) return;
    let seen = node;
    while (!this.#groups.has(seen.id)) seen = seen.parent;
    this.#move(seen);
    const group = this.#groups.get(seen.id);
    group.focus({ preventScroll: true });
    group.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Let Tab come to this node. */
  #move(node) {
    this.#groups.get(this.#current).setAttribute("tabindex", "-1");
    this.#current = node.id;
    this.#groups.get(node.id).setAttribute("tabindex", "0");
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#resize(this.#zoom * Math.exp(-event.deltaY / 300));
  }
}

function scaleIn({ width, height }, room) {
  return room.width > 0 ? Math.min(ROOMY, room.width / width, room.height / height) : 1;
}

function between(one, other) {
  return { start: Math.min(one.start, other.start), end: Math.max(one.end, other.end) };
}

// Shapes as elements ------------------------------------------------------------------------------

function element(shape) {
  if (shape.kind === "path") return svg("path", { class: shape.role, d: shape.path });
  if (shape.kind === "box") {
    const { x, y, width, height, radius, role } = shape;
    return svg("rect", { class: role, x, y, width, height, rx: radius });
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

function nodeAt(target) {
  const group = target.closest?.("[data-node]") ?? null;
  return group === null ? null : Number(group.dataset.node);
}
