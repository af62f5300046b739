/**
 * What the reader has chosen, in words: a node with its rivals, a word with its tag, or words that
 * were dragged over; and what can be asked for there.
 */

import { cross, endsOf, wordsOf } from "./analysis.js";
import { cellsOf, keyOf, toldShareOf } from "./chart.js";
import { correctionOf, askedOf, listed } from "./corrections.js";
import { byId, html } from "./dom.js";
import { doubtfulNodes, isKnown, levelOf, sureness } from "./doubt.js";
import { meaningOf } from "./glossary.js";
import { count, percent } from "./numbers.js";

const MOST = 6;
const TAKE = "Take this one";

export class Inspector {
  #store;
  #session;
  #trees;
  #models;
  /** Takes over marginals that come while something is chosen. */
  #onMarginals = () => {};

  /**
   * @param trees   has `chosen`, the nodes of the tree shown, and `reveal` and `toggle` for them
   * @param models  says which labels and tags there are
   */
  constructor(store, session, trees, models) {
    this.#store = store;
    this.#session = session;
    this.#trees = trees;
    this.#models = models;
    store.on(["selected", "one", "tree"], () => this.show());
    store.on(["marginals"], () => this.#onMarginals());
    store.on(["selected"], ({ selected }) => {
      if (selected !== null) session.readMarginals();
    });
    byId("inspector").addEventListener("keydown", ({ key }) => {
      if (key === "Escape") this.#close();
    });
  }

  /** Describe what is chosen, or where the model is in doubt. */
  show() {
    const { one, selected } = this.#store.now;
    const box = byId("inspected");
    this.#onMarginals = () => this.show();
    byId("inspector").classList.toggle("open", selected !== null);
    byId("inspector").hidden = (one?.parses.length ?? 0) === 0;
    if (byId("inspector").hidden) box.replaceChildren();
    else if (selected === null) box.replaceChildren(...this.#overview());
    else if (selected.id === undefined) box.replaceChildren(...this.#ofWords(selected));
    else if (selected.word !== null) box.replaceChildren(...this.#ofWord(selected));
    else box.replaceChildren(...this.#ofNode(selected));
  }

  #overview() {
    const doubts = doubtfulNodes(this.#trees.chosen ?? []);
    const { tokens } = this.#store.now.one;
    const hasNumbers = (this.#trees.chosen ?? []).some(({ probability }) => isKnown(probability));
    const lead = doubts.length > 0
      ? `The model is less than 95 % sure of ${count(doubts.length, "node")}:`
      : hasNumbers ? "The model is at least 95 % sure of every node."
        : "The model gives pieces no probabilities.";
    const items = doubts.slice(0, MOST).map((node) => choice(
      { name: node.label, words: endsOf(tokens, node.start, node.end), share: node.probability, isDoubt: true },
      () => this.#trees.reveal(node),
    ));
    return [
      html("h2", {}, "Where it is in doubt"),
      html("p", {}, lead),
      rivalList(items),
      doubts.length > MOST ? html("p", { class: "muted" }, `and ${doubts.length - MOST} more.`) : null,
      html("p", { class: "muted hint" }, "Choose a node to see its rivals. Drag over words, or choose one "
        + "and add its neighbours, to ask for a constituent there or to forbid one."),
    ].filter(Boolean);
  }

  // Nodes -----------------------------------------------------------------------------------------

  #ofNode(node) {
    const { one, marginals } = this.#store.now;
    return [
      ...this.#head(node.label, meaningOf(node.label), wordsOf(one.tokens, node.start, node.end)),
      this.#state(node),
      marginals === null ? html("p", { class: "muted" }, "Asking for its rivals …")
        : html("div", {}, ...this.#rivals(node, marginals)),
      html("button", { type: "button", on: { click: () => this.#trees.toggle(node) } }, "Fold or unfold"),
    ];
  }

  #rivals(node, marginals) {
    const cells = cellsOf(marginals);
    const here = cells.find((cell) => keyOf(cell) === keyOf(node));
    const labels = (here?.labels ?? []).filter(({ label }) => label !== node.label);
    const { start, end } = node;
    const others = rivalsAround(cells, node, this.#trees.chosen);
    const take = (cell) => this.#take({ start: cell.start, end: cell.end, ...cell.labels[0] });
    const beside = others.filter((cell) => !cross(cell, node)).map(take);
    return [
      html("h3", {}, "Instead of it"),
      rivalList([
        ...labels.map((one) => this.#take({ start, end, ...one })),
        this.#refuse(node, here),
        ...others.filter((cell) => cross(cell, node)).map(take),
      ]),
      ...(beside.length === 0 ? [] : [html("h3", {}, "Other constituents around it"), rivalList(beside)]),
    ];
  }

  #refuse({ start, end }, cell) {
    const share = Math.max(0, 1 - (cell?.expected ?? 0));
    return choice({ name: "none", words: "no constituent here", share, verb: TAKE },
      () => this.#session.constrain({ start, end, forbid: true }));
  }

  #take({ start, end, label, probability }) {
    const words = endsOf(this.#store.now.one.tokens, start, end);
    return choice({ name: label, words, share: probability, verb: TAKE },
      () => this.#session.constrain({ start, end, label }));
  }

  /** How sure the model is; and whether the reader asked for this. */
  #state({ start, end, label, probability }) {
    const wanted = this.#wanted({ start, end });
    const level = levelOf(probability);
    const told = html("p", { class: `level ${level}` }, sureness(probability));
    const isWanted = wanted && (wanted.label === label || wanted.tag === label || !wanted.label);
    if (!isWanted) return told;
    return html("div", {}, html("p", {}, "You asked for this."), html("button", {
      type: "button", on: { click: () => this.#session.withdraw(wanted) },
    }, "Ask for it no more"));
  }

  #wanted({ start, end }) {
    const asked = listed(askedOf(correctionOf(this.#store.now)));
    return asked.find((one) => one.start === start && one.end === end && !one.forbid);
  }

  // Words -----------------------------------------------------------------------------------------

  #ofWord(leaf) {
    const list = choices("Tag", this.#models.current?.tags ?? [leaf.label], leaf.label);
    this.#onMarginals = () => {}; // a tag does not depend on them, and the reader may be choosing one
    return [
      ...this.#head(leaf.label, meaningOf(leaf.label), leaf.word),
      this.#state(leaf),
      form("Change the tag", list, () => this.#session.retag(leaf.start, list.value)),
      this.#stretch(leaf),
    ];
  }

  #ofWords({ start, end }) {
    const list = choices("Label", ["", ...this.#models.current?.labels ?? []], "");
    const told = html("p");
    let isPicked = false; // what the reader picks stays when marginals come
    list.addEventListener("change", () => {
      isPicked = true;
    });
    this.#onMarginals = () => {
      const { marginals } = this.#store.now;
      const cell = marginals && cellsOf(marginals).find((other) => keyOf(other) === keyOf({ start, end }));
      if (!isPicked) list.value = cell?.labels[0]?.label ?? "";
      if (list.selectedIndex < 0) list.value = ""; // a label that the model's list does not have
      told.textContent = marginals === null ? "Asking how probable that is …"
        : `They form a constituent with a probability of ${percent(cell ? toldShareOf(cell) : 0)}.`;
    };
    this.#onMarginals();
    return [
      ...this.#head(count(end - start, "word"), null, wordsOf(this.#store.now.one.tokens, start, end)),
      this.#stretch({ start, end }),
      told,
      form("Ask for this constituent", list, () => this.#session.constrain({
        start, end, ...(list.value && { label: list.value }),
      })),
      html("button", {
        type: "button", on: { click: () => this.#session.constrain({ start, end, forbid: true }) },
      }, "Forbid a constituent here"),
    ];
  }

  /** Buttons that choose one word more, for those who cannot drag. */
  #stretch({ start, end }) {
    const { tokens } = this.#store.now.one;
    const button = (words, to) => html("button", {
      type: "button",
      disabled: to.start < 0 || to.end > tokens.length,
      on: { click: () => this.#store.set({ selected: to, moved: null }) },
    }, words);
    return html("div", { class: "tools", role: "group", "aria-label": "Choose more words" },
      button("← Add a word", { start: start - 1, end }), button("Add a word →", { start, end: end + 1 }));
  }

  #head(name, meaning, words) {
    return [
      html("div", { class: "inspected-head" }, html("h2", {}, name), html("button", {
        type: "button", class: "quiet", "aria-label": "Close", on: { click: () => this.#close() },
      }, "✕")),
      meaning === null ? null : html("p", { class: "meaning" }, meaning),
      html("p", { class: "span-words" }, html("q", {}, words)),
    ].filter(Boolean);
  }

  #close() {
    this.#store.set({ selected: null });
    this.#trees.focus();
  }
}

/** Other groupings: spans that cross a node, or begin or end with it, and are not in the tree. */
function rivalsAround(cells, node, nodes) {
  const inTree = new Set(nodes.map(keyOf));
  const touches = (cell) => cross(cell, node) || (cell.start === node.start) !== (cell.end === node.end);
  return cells
    .filter((cell) => cell.labels.length > 0 && touches(cell) && !inTree.has(keyOf(cell)))
    .sort((a, b) => b.expected - a.expected)
    .slice(0, MOST);
}

function rivalList(buttons) {
  return html("ul", { class: "rivals" }, ...buttons.map((one) => html("li", {}, one)));
}

/** A button with a name, words and a bar as long as they are probable; nodes in doubt have colours. */
function choice({ name, words, share, verb = "", isDoubt = false }, act) {
  const bar = html("span", { class: `bar ${isDoubt ? levelOf(share) : ""}`, "aria-hidden": "true" });
  bar.style.setProperty("--share", `${share * 100}%`);
  return html(
    "button",
    { type: "button", class: "choice", on: { click: act } },
    html("span", {}, html("b", {}, name), html("span", { class: "choice-words" }, words),
      html("span", { class: "number" }, percent(share))),
    html("span", {}, bar, verb ? html("span", { class: "verb" }, verb) : null),
  );
}

function choices(name, values, chosen) {
  return html("select", { "aria-label": name }, ...values.map((value) => html("option", {
    value, selected: value === chosen,
  }, value === "" ? "any label" : optionText(value))));
}

function optionText(value) {
  return meaningOf(value) === null ? value : `${value} – ${meaningOf(value)}`;
}

function form(words, list, act) {
  const send = (event) => {
    event.preventDefault();
    act();
  };
  return html("form", { class: "wish", on: { submit: send } }, list, html("button", { class: "main" }, words));
}
