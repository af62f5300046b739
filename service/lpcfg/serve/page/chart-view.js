/**
 * The chart on the screen: a triangle of cells, pointed at, walked by keys, with a tree over it,
 * and the same as a table.
 */

import { endsOf, wordsOf } from "./analysis.js";
import { cellsOf, crossing, keyOf, neighbour, shareOf, toldShareOf, treeLines, visible } from "./chart.js";
import { html, svg } from "./dom.js";
import { dragToScroll } from "./drag.js";
import { meaningOf } from "./glossary.js";
import { percent, wordRange } from "./numbers.js";
import { Minimap } from "./minimap.js";
import { isLitSpan } from "./hover.js";
import { TYPE, fitted, widthOf } from "./type.js";

/** Half of this is the height of a row: labels stay readable in it. */
const READABLE = 26;
const NARROWEST = 6;
const WIDEST = 56;
const STEP = 1.25;
/** The chart is never larger than this. */
const LARGEST = 120;
/** Cells at least this likely show their likeliest label, if it fits. */
const LABELLED = 0.25;
const SMALLEST_LABEL = 7;
const MARGIN = 16;
const LONGEST_WORD = 92;
const SMALLEST_WORD = 10.5;
const SLOPE = 60;
const ZOOMS = { "+": "zoomIn", "-": "zoomOut", 0: "fit" };
const ARROWS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };

export class ChartView {
  #tokens = [];
  #cells = [];
  #shown = [];
  #nodes = [];
  #groups = new Map();
  #current = null;
  #pinned = null;
  #unit = null;
  #minimap;
  #onSpot;
  #onRead;

  /**
   * @param onSpot  called with the spot that the reader points at
   * @param onRead  called with a cell and the cells that cross it, or null
   */
  constructor({ onSpot, onRead }) {
    this.#onSpot = onSpot;
    this.#onRead = onRead;
    this.picture = svg("svg", {
      class: "chart",
      role: "group",
      "aria-label": "Chart of spans. Arrow keys go from cell to cell.",
    });
    this.box = html("div", { class: "canvas" }, this.picture);
    this.#minimap = new Minimap(this.box);
    this.element = html("div", { class: "pane" }, this.box, this.#minimap.element);
    dragToScroll(this.box);
    this.#listen();
  }

  /** Show the marginals of a sentence, with a tree over them unless `nodes` is null. */
  show(marginals, { threshold, nodes }) {
    if (this.#tokens !== marginals.tokens) this.#unit = null;
    this.#tokens = marginals.tokens;
    this.#cells = cellsOf(marginals);
    this.#nodes = nodes ?? [];
    this.#shown = visible(this.#cells, threshold);
    this.#pinned = null;
    this.#draw();
    this.#read(null);
  }

  /** Make the whole chart visible. */
  fit() {
    this.#unit = NARROWEST;
    this.#draw();
  }

  zoomIn() {
    this.#zoom(STEP);
  }

  zoomOut() {
    this.#zoom(1 / STEP);
  }

  /** Hold a cell. */
  pin(cell) {
    this.#pinned = null;
    this.#pin(keyOf(cell));
    this.#groups.get(keyOf(cell)).group.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** The cells drawn. */
  get shown() {
    return this.#shown;
  }

  /** Highlight what belongs to a spot. */
  light(spot) {
    for (const { group, cell } of this.#groups.values()) {
      group.classList.toggle("lit", isLitSpan(spot, cell));
    }
  }

  // Drawing ---------------------------------------------------------------------------------------

  #zoom(factor) {
    const { box } = this;
    const before = this.picture.clientWidth;
    const middle = box.scrollLeft + box.clientWidth / 2;
    const unit = factor * planOf(this.#tokens, box.clientWidth, this.#unit).unit;
    this.#unit = Math.min(LARGEST, Math.max(NARROWEST, unit));
    this.#draw();
    box.scrollLeft = (middle * this.picture.clientWidth) / before - box.clientWidth / 2;
  }

  #draw() {
    const isFirst = this.#unit === null;
    const plan = planOf(this.#tokens, this.box.clientWidth, this.#unit);
    this.#unit = plan.unit;
    const { width, height } = plan;
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      this.picture.setAttribute(name, value);
    }
    this.#groups.clear();
    const inTree = new Set(this.#nodes.filter((node) => node.word === null).map(keyOf));
    const cells = this.#shown.map((cell) => this.#cell(cell, plan, inTree));
    this.picture.replaceChildren(outline(plan), overlay(this.#nodes, plan), ...cells, ...words(plan));
    this.#current = this.#groups.has(this.#current) ? this.#current : firstKey(this.#shown);
    this.#groups.get(this.#current)?.group.setAttribute("tabindex", "0");
    this.#minimap.show(plan, mapLines(this.#nodes, plan));
    this.#minimap.follow(); // where it appears, it takes some of the room
    if (isFirst) {
      // most spans are short and stand at the bottom, near the words
      this.box.scrollLeft = (width - this.box.clientWidth) / 2;
      this.box.scrollTop = height;
    }
  }

  #cell(cell, plan, inTree) {
    const share = shareOf(cell);
    const [x, y] = plan.place(cell);
    const isInTree = inTree.has(keyOf(cell));
    const group = svg("g", {
      class: isInTree ? "cell in-tree" : "cell",
      role: "button",
      tabindex: "-1",
      transform: `translate(${x} ${y})`,
      "aria-label": this.#words(cell, isInTree),
      "data-key": keyOf(cell),
    });
    const inner = plan.half * (0.3 + 0.65 * Math.sqrt(share));
    const shade = svg("path", { class: "shade", d: diamond(inner) });
    shade.style.setProperty("--share", `${share * 100}%`);
    group.append(svg("path", { class: "reach", d: diamond(plan.half) }), shade);
    const label = cell.labels[0]?.label ?? "";
    const fitting = TYPE.tag.size * ((inner * 1.5) / widthOf(label, "tag"));
    const size = Math.min(TYPE.tag.size * 1.2, fitting, inner);
    if (share >= LABELLED && size >= SMALLEST_LABEL) group.append(text(label, size));
    this.#groups.set(keyOf(cell), { group, cell });
    return group;
  }

  #words(cell, isInTree) {
    const { start, end } = cell;
    const rivals = cell.labels.map(({ label, probability }) => `${label} ${percent(probability)}`);
    return [
      `${wordRange(start, end)}: ${wordsOf(this.#tokens, start, end)}`,
      rivals.join(", ") || "no label above the threshold",
      isInTree ? "in the tree" : null,
    ].filter(Boolean).join("; ");
  }

  // Interaction -----------------------------------------------------------------------------------

  #listen() {
    const { picture } = this;
    picture.addEventListener("pointerover", (event) => this.#read(keyAt(event) ?? this.#pinned));
    picture.addEventListener("pointerleave", () => this.#read(this.#pinned));
    picture.addEventListener("focusin", (event) => this.#read(keyAt(event)));
    picture.addEventListener("focusout", () => this.#read(this.#pinned));
    picture.addEventListener("click", (event) => this.#pin(keyAt(event)));
    picture.addEventListener("keydown", (event) => this.#key(event));
    this.box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.#zoom(Math.exp(-event.deltaY / 300));
    }, { passive: false });
  }

  #read(key) {
    const cell = this.#groups.get(key)?.cell ?? null;
    const crossed = cell === null ? [] : crossing(this.#shown, cell);
    const keys = new Set(crossed.map(keyOf));
    for (const [name, { group }] of this.#groups) {
      group.classList.toggle("read", name === key);
      group.classList.toggle("crossing", keys.has(name));
    }
    this.#onSpot(cell && { start: cell.start, end: cell.end, part: "span" });
    this.#onRead(cell, crossed);
  }

  #pin(key) {
    this.#pinned = key === this.#pinned ? null : key;
    for (const [name, { group }] of this.#groups) {
      group.setAttribute("aria-pressed", String(name === this.#pinned));
    }
    this.#read(key);
  }

  #key(event) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#pin(this.#current);
    } else if (event.key === "Escape") {
      this.#pin(null);
    } else if (ZOOMS[event.key] && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this[ZOOMS[event.key]]();
    } else if (ARROWS[event.key]) {
      event.preventDefault();
      const from = this.#groups.get(this.#current).cell;
      const to = neighbour(this.#shown, from, ARROWS[event.key]);
      if (to !== null) this.#go(keyOf(to));
    }
  }

  #go(key) {
    this.#groups.get(this.#current).group.setAttribute("tabindex", "-1");
    this.#current = key;
    const { group } = this.#groups.get(key);
    group.setAttribute("tabindex", "0");
    group.focus({ preventScroll: true });
    group.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

/** The rows of the chart as a table: every label of every cell shown. */
export function tableOf(tokens, cells, nodes) {
  const inTree = new Set(nodes.map((node) => `${keyOf(node)} ${node.label}`));
  const rows = cells.flatMap((cell) => cell.labels.map((rival) => ({ ...cell, ...rival })));
  const head = ["Words", "From – to", "Label", "Probability", "In the tree"];
  return html(
    "table",
    {},
    html("caption", {}, "Spans and their labels"),
    html("thead", {}, html("tr", {}, ...head.map((name) => html("th", { scope: "col" }, name)))),
    html("tbody", {}, ...rows.map((row) => html(
      "tr",
      {},
      html("th", { scope: "row" }, wordsOf(tokens, row.start, row.end)),
      html("td", {}, `${row.start + 1} – ${row.end}`),
      html("td", {}, row.label),
      html("td", {}, percent(row.probability)),
      html("td", {}, inTree.has(`${keyOf(row)} ${row.label}`) ? "yes" : "no"),
    ))),
  );
}

// Geometry ----------------------------------------------------------------------------------------

/**
 * Compute the size and places of cells, and how words fit under them.
 *
 * @param wanted  the width of a word's cell; null for the widest that fits, or is readable
 */
function planOf(tokens, room, wanted) {
  const n = tokens.length;
  const names = tokens.map((token) => fitted(token.text, "word", LONGEST_WORD));
  const widest = Math.max(...names.map((name) => widthOf(name, "word")));
  const least = wanted === null ? READABLE : NARROWEST;
  const fitting = (left) => Math.min(WIDEST, Math.max(least, (room - left - MARGIN) / n));
  const unitWith = (left) => (wanted === null || wanted === NARROWEST ? fitting(left) : wanted);
  const steep = widest > unitWith(MARGIN) - 6;
  const letters = steep
    ? Math.min(TYPE.word.size, Math.max(SMALLEST_WORD, 0.62 * unitWith(MARGIN)))
    : TYPE.word.size;
  const reach = (widest * letters) / TYPE.word.size;
  const slope = (SLOPE * Math.PI) / 180;
  // sloping words reach to the left of their cells
  const left = MARGIN + (steep ? reach * Math.cos(slope) : 0);
  const unit = unitWith(left);
  const base = MARGIN + (n * unit) / 2 + unit / 2;
  return {
    n,
    unit,
    half: unit / 2,
    names,
    letters,
    steep,
    left,
    base,
    width: left + n * unit + MARGIN,
    height: base + (steep ? reach * Math.sin(slope) + 20 : 28),
    place: ({ start, end }) => [
      left + ((start + end) * unit) / 2,
      base - ((end - start) * unit) / 2,
    ],
  };
}

function diamond(half) {
  return `M0 ${-half}L${half} 0L0 ${half}L${-half} 0Z`;
}

function outline({ n, unit, left, base, place }) {
  const [x, y] = place({ start: 0, end: n });
  const foot = base - unit / 2;
  const path = `M${left} ${foot}L${x} ${y - unit / 2}L${left + n * unit} ${foot}`
    + Array.from({ length: n }, (_, number) => n - number - 1)
      .map((number) => `L${left + (number + 0.5) * unit} ${base}L${left + number * unit} ${foot}`)
      .join("");
  return svg("path", { class: "outline", d: `${path}Z` });
}

function words({ names, letters, left, unit, base, steep }) {
  return names.map((name, number) => {
    const x = left + (number + 0.5) * unit;
    const y = base + (steep ? 10 : 16);
    return svg("text", {
      class: "word",
      "data-word": number,
      "font-size": letters,
      "text-anchor": steep ? "end" : "middle",
      transform: steep ? `translate(${x + letters / 3} ${y}) rotate(-${SLOPE})` : `translate(${x} ${y})`,
    }, name);
  });
}

/** The triangle and the tree in it, as lines of a small map. */
function mapLines(nodes, { n, place }) {
  const corner = (span) => place(span).join(" ");
  const triangle = `M${corner({ start: 0, end: 0 })}L${corner({ start: 0, end: n })}L${corner({ start: n, end: n })}`;
  const lines = treeLines(nodes).map(({ from, to }) => `M${corner(from)}L${corner(to)}`);
  return [triangle, ...lines].join("");
}

function overlay(nodes, { place, unit }) {
  const places = new Map(nodes.filter((node) => node.word === null).map((node) => [
    keyOf(node), node,
  ]));
  const radius = Math.max(2, Math.min(4, unit / 8));
  return svg(
    "g",
    { class: "overlay", "aria-hidden": "true" },
    ...treeLines(nodes).map(({ from, to }) => {
      const [x1, y1] = place(from);
      const [x2, y2] = place(to);
      return svg("line", { x1, y1, x2, y2 });
    }),
    ...[...places.values()].map((node) => {
      const [cx, cy] = place(node);
      return svg("circle", { cx, cy, r: radius });
    }),
  );
}

function text(words, size) {
  const { weight } = TYPE.tag;
  return svg("text", { y: size * 0.36, "text-anchor": "middle", "font-size": size, "font-weight": weight }, words);
}

function firstKey(cells) {
  return cells.length === 0 ? null : keyOf(cells[0]);
}

function keyAt(event) {
  return event.target.closest("[data-key]")?.dataset.key ?? null;
}

/** A cell in words, for the panel beside the chart. */
export function readingOf(cell, crossed, tokens) {
  const rivals = cell.labels.map(({ label, probability }) => rival(label, probability));
  const most = crossed.slice(0, 5).map((other) => html(
    "li",
    {},
    html("q", {}, endsOf(tokens, other.start, other.end)),
    ` ${percent(toldShareOf(other))}`,
  ));
  return [
    html("p", { class: "span-words" }, html("q", {}, wordsOf(tokens, cell.start, cell.end))),
    html("p", { class: "muted" }, `${wordRange(cell.start, cell.end)}; a constituent: `
      + `${percent(toldShareOf(cell))}`),
    html("ul", { class: "rivals", "aria-label": "Labels that rival here" }, ...rivals),
    crossed.length === 0 ? html("p", { class: "muted" }, "No span shown crosses it.") : html(
      "div",
      { class: "muted" },
      html("p", {}, `Crossed by ${crossed.length}, the likeliest:`),
      html("ol", {}, ...most),
    ),
  ];
}

function rival(label, probability) {
  const bar = html("span", { class: "bar" });
  bar.style.setProperty("--share", `${probability * 100}%`);
  return html("li", {}, html("b", { title: meaningOf(label) }, label), bar, html("span", {}, percent(probability)));
}
