/**
 * The chart's panel: threshold, tree over it, what the reader points at, and the table.
 */

import { ChartView, readingOf, tableOf } from "./chart-view.js";
import { byId, html } from "./dom.js";
import { count, short } from "./numbers.js";

const HINT = "Point at a cell, or walk with arrow keys, to see the labels that rival there.";

export class ChartPanel {
  #store;
  #trees;
  #view;

  /** @param trees  has the chosen tree's nodes as `chosen` */
  constructor(store, spotlight, trees) {
    this.#store = store;
    this.#trees = trees;
    this.#view = new ChartView({
      onSpot: (spot) => spotlight.turn(spot),
      onRead: (cell, crossed) => this.#read(cell, crossed),
    });
    byId("chart").append(this.#view.element);
    spotlight.on((spot) => this.#view.light(spot));
    store.on(["marginals", "threshold", "overlay", "tree"], () => this.show());
    byId("threshold").addEventListener("input", (event) => {
      store.set({ threshold: Number(event.target.value) });
    });
    byId("overlay").addEventListener("change", (event) => {
      store.set({ overlay: event.target.checked });
    });
    byId("table").addEventListener("toggle", () => this.#fillTable());
  }

  /** Draw the current state. */
  show() {
    const { marginals, threshold, overlay, view } = this.#store.now;
    byId("threshold").value = threshold;
    byId("threshold-value").textContent = short(threshold);
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
      ? [html("p", { class: "muted hint" }, HINT)]
      : readingOf(cell, crossed, this.#store.now.marginals.tokens)));
  }
}
