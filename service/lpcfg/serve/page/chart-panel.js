/**
 * The chart's panel: threshold, tree over it, what the reader points at, and the table.
 */

import { endsOf } from "./analysis.js";
import { shareOf, toldShareOf } from "./chart.js";
import { ChartView, readingOf, tableOf } from "./chart-view.js";
import { byId, html } from "./dom.js";
import { count, percent } from "./numbers.js";

const HINT = "Point at a cell, or walk with arrow keys, to see the labels that rival there.";
const NO_WHOLE = "No tree spans all words: the model gives pieces no probabilities.";
/** So many of the spans that are nearest to one half are told before a cell is pointed at. */
const CONTESTED = 5;

export class ChartPanel {
  #store;
  #trees;
  #view;

  /** @param trees  has the chosen tree's nodes as `chosen` */
  constructor(store, hover, trees) {
    this.#store = store;
    this.#trees = trees;
    this.#view = new ChartView({
      onSpot: (spot) => hover.turn(spot),
      onRead: (cell, crossed) => this.#read(cell, crossed),
    });
    byId("chart").append(this.#view.element);
    hover.on((spot) => this.#view.light(spot));
    store.on(["marginals", "threshold", "overlay", "tree", "view"], () => this.show());
    byId("threshold").addEventListener("input", (event) => {
      store.set({ threshold: Number(event.target.value) });
    });
    for (const [id, action] of [["chart-out", "zoomOut"], ["chart-fit", "fit"], ["chart-in", "zoomIn"]]) {
      byId(id).addEventListener("click", () => this.#view[action]());
    }
    byId("overlay").addEventListener("change", (event) => {
      store.set({ overlay: event.target.checked });
    });
    byId("table").addEventListener("toggle", () => this.#fillTable());
  }

  /** Draw the current state. */
  show() {
    const { marginals, threshold, overlay, view } = this.#store.now;
    byId("threshold").value = threshold;
    byId("threshold-value").textContent = `${Math.round(100 * threshold)} %`;
    byId("overlay").checked = overlay;
    byId("chart-content").hidden = marginals === null;
    if (marginals === null || view !== "chart") return;
    this.#view.show(marginals, { threshold, nodes: overlay ? this.#trees.chosen : null });
    byId("chart-count").textContent = count(this.#view.shown.length, "span");
    this.#fillTable();
  }

  #fillTable() {
    const { marginals } = this.#store.now;
    const wanted = byId("table").open && marginals !== null;
    byId("table-content").replaceChildren(...(wanted
      ? [tableOf(marginals.tokens, this.#view.shown, this.#trees.chosen ?? [])]
      : []));
  }

  #read(cell, crossed) {
    byId("cell").replaceChildren(...(cell === null
      ? [...this.#contested(), html("p", { class: "muted hint" }, HINT)]
      : readingOf(cell, crossed, this.#store.now.marginals.tokens)));
  }

  /** Say which spans the model is least decided about. */
  #contested() {
    const { marginals, one } = this.#store.now;
    if (marginals === null) return [];
    if (one?.status !== "parsed") return [html("p", {}, NO_WHOLE)];
    const doubt = (cell) => Math.abs(shareOf(cell) - 0.5);
    const cells = this.#view.shown.filter((cell) => doubt(cell) < 0.45)
      .sort((a, b) => doubt(a) - doubt(b)).slice(0, CONTESTED);
    if (cells.length === 0) return [html("p", {}, "The model is decided about every span shown.")];
    return [html("h2", {}, "Least decided"), html("ul", { class: "rivals" }, ...cells.map((cell) =>
      html("li", {}, html("button", {
        type: "button", class: "choice", on: { click: () => this.#view.pin(cell) },
      }, html("span", {}, html("b", {}, cell.labels[0]?.label ?? "–"),
        html("span", { class: "choice-words" }, endsOf(marginals.tokens, cell.start, cell.end)),
        html("span", { class: "number" }, percent(toldShareOf(cell))))))))];
  }
}
