/**
 * One tree on the screen: drawn, folded, walked by keys, zoomed, and its nodes and words chosen.
 *
 * The drawing stands in a box that scrolls, so that fingers, wheels and scroll bars work as they
 * do everywhere. A mouse that drags from word to word chooses them; elsewhere it moves the drawing.
 */

import { isKnown, levelOf, sureness } from "./doubt.js";
import { dress, html, svg } from "./dom.js";
import { meaningOf } from "./glossary.js";
import { layout, leastWidth } from "./layout.js";
import { Minimap } from "./minimap.js";
import { dragToScroll } from "./drag.js";
import { outline } from "./outline.js";
import { edgeShapes } from "./shapes.js";
import { isLitSpan } from "./hover.js";
import { nodeElement } from "./tree-elements.js";
import { TreeGroups } from "./tree-groups.js";
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
/** How far from the view a node is near, in the drawing's units. */
const AROUND = 10;

export class TreeView {
  #nodes = [];
  #words = [];
  #marks = new Map();
  #folded = new Set();
  #turned = null;
  #zoom = 1;
  #drawing = null;
  #groups;
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
    this.#groups = new TreeGroups(this.picture, (place) => this.#group(place));
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
    this.#draw(true);
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
    for (const [id, group] of this.#groups) {
      const isChosen = this.#isChosen(this.#nodes[id]);
      group.classList.toggle("chosen", isChosen);
      group.setAttribute("aria-selected", String(isChosen));
    }
  }

  /** Make the whole tree visible. */
  fit() {
    this.#resize(scaleIn(this.#drawing, this.#room()));
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

  /** Place the tree and draw it. One that opens gets its size before the browser looks at it. */
  #draw(opening = false) {
    const room = this.#room();
    this.#drawing = this.#placed(room);
    const { width, height, blocks, sideways } = this.#drawing;
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (opening) this.#size(this.#opening(room));
    this.element.classList.toggle("outline", sideways);
    if (!this.#isDrawn(this.#current)) this.#current = 0;
    const lines = blocks.flatMap(edgeShapes).map(({ path }) => path).join("");
    const ground = svg("path", { class: "edge", role: "none", d: lines });
    const places = blocks.flatMap((block) => block.nodes.map((one) => ({ one, block, sideways })));
    this.#groups.show(ground, places, this.#near(room, opening));
    this.#minimap.show(this.#drawing, lines);
    if (opening) this.#centre(this.#nodes[0], true);
  }

  /** An outline if the reader wants one, or if the upright tree were too small in a narrow box. */
  #placed(room) {
    const [root] = this.#nodes;
    const mayTurn = this.#turned === null && room.width > 0 && room.width < NARROW;
    const isTooWide = () => this.#folded.size === 0 && room.width / leastWidth(this.#words) < READABLE;
    if (this.#turned || (mayTurn && isTooWide())) return outline(root, this.#folded);
    const upright = layout(root, this.#folded);
    return mayTurn && scaleIn(upright, room) < READABLE ? outline(root, this.#folded) : upright;
  }

  /** What is near the part of the drawing that the box shows, or will show when it opens. */
  #near(room, opening) {
    const { sideways } = this.#drawing;
    if (room.width === 0 || (sideways && !opening)) return () => true;
    const width = room.width / this.#zoom;
    const height = Math.min(sideways ? Infinity : room.height, room.below) / this.#zoom;
    const x = opening ? this.#left(width) : room.left / this.#zoom;
    const y = opening ? 0 : room.top / this.#zoom;
    const view = { x, y, width, height };
    return ({ one, block }) => one.node.id === this.#current || isNear(one.box, view)
      || (block.textBox !== null && isNear(block.textBox, view));
  }

  /** Where a view of this width begins when the tree opens. */
  #left(shown) {
    if (this.#drawing.sideways) return 0;
    const root = this.#boxOf(this.#nodes[0]);
    return Math.max(0, Math.min(root.x + (root.width - shown) / 2, this.#drawing.width - shown));
  }

  #isDrawn(id) {
    return this.#drawing.blocks.some(({ nodes }) => nodes.some(({ node }) => node.id === id));
  }

  #isChosen({ id, word, start, end }) {
    const chosen = this.#chosen;
    if (chosen === null || chosen.id !== undefined) return chosen?.id === id;
    return word !== null && chosen.start <= start && end <= chosen.end;
  }

  #group(place) {
    const { node } = place.one;
    const mark = this.#marks.get(node.id);
    const isChosen = this.#isChosen(node);
    const classes = ["node", levelOf(node.probability), mark?.kind];
    if (isLitSpan(this.#spot, node)) classes.push("lit");
    if (isChosen) classes.push("chosen");
    const siblings = node.parent?.children ?? [node];
    return dress(nodeElement(place, mark), {
      class: classes.filter(Boolean).join(" "),
      tabindex: node.id === this.#current ? "0" : null,
      "aria-level": node.depth + 1,
      "aria-setsize": siblings.length,
      "aria-posinset": node.place + 1,
      "aria-expanded": node.word === null ? String(!this.#folded.has(node.id)) : null,
      "aria-selected": isChosen ? "true" : null,
      "aria-label": this.#description(node),
      "data-node": node.id,
      "data-label": node.label,
      "data-start": node.start,
      "data-end": node.end,
    });
  }

  #description(node) {
    return [
      meaningOf(node.label) === null ? node.label : `${node.label}: ${meaningOf(node.label)}`,
      this.#words.slice(node.start, node.end).map((leaf) => leaf.word).join(" "),
      isKnown(node.probability) ? sureness(node.probability) : null,
      this.#marks.get(node.id)?.words,
    ].filter(Boolean).join(", ");
  }

  // Size and place --------------------------------------------------------------------------------

  /** The room that the box has, how far it is scrolled, and how much of the window is below its top. */
  #room() {
    const style = getComputedStyle(this.box);
    return {
      width: this.box.clientWidth,
      height: parseFloat(style.maxHeight) || Infinity,
      left: this.box.scrollLeft,
      top: this.box.scrollTop,
      below: Math.max(0, window.innerHeight - this.box.getBoundingClientRect().top),
    };
  }

  /** The scale that a tree opens in: as large as fits, where that is readable. */
  #opening(room) {
    const scale = scaleIn(this.#drawing, room);
    if (this.#drawing.sideways) return Math.min(1, Math.max(READABLE, room.width / this.#drawing.width));
    return scale < READABLE ? COMFORTABLE : scale;
  }

  #size(zoom) {
    this.#zoom = Math.min(LARGEST, Math.max(SMALLEST, zoom));
    this.picture.setAttribute("width", this.#drawing.width * this.#zoom);
    this.picture.setAttribute("height", this.#drawing.height * this.#zoom);
  }

  #resize(zoom) {
    const { box } = this;
    const before = this.#zoom;
    const [x, y] = [box.scrollLeft + box.clientWidth / 2, box.scrollTop + box.clientHeight / 2];
    this.#size(zoom);
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

/** Return true if a box is in the view, or hardly outside of it. */
function isNear(box, view) {
  return box.x < view.x + view.width + AROUND && box.x + box.width > view.x - AROUND
    && box.y < view.y + view.height + AROUND && box.y + box.height > view.y - AROUND;
}

function between(one, other) {
  return { start: Math.min(one.start, other.start), end: Math.max(one.end, other.end) };
}

function nodeAt(target) {
  const group = target.closest?.("[data-node]") ?? null;
  return group === null ? null : Number(group.dataset.node);
}
