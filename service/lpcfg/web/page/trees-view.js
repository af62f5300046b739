/**
 * The trees of the chosen sentence, side by side: chosen, compared, folded, taken away as files.
 */

import { treeOf, wordsOf } from "./analysis.js";
import { distinctive, missingFrom } from "./compare.js";
import { byId, html } from "./dom.js";
import { copy, save } from "./files.js";
import { exact, log, wordRange } from "./numbers.js";
import { pngPicture, svgPicture } from "./picture.js";
import { TreeView } from "./tree-view.js";

const DIFFERENT = { kind: "differs", sign: "≠", words: "not in all of these trees" };
/** The most differences shown at once; a button shows more. */
const FEW = 4;
/** A tree wider than this many times its room is easier to read sideways. */
const TOO_WIDE = 2.4;

export class TreesView {
  #store;
  #spotlight;
  #views = [];
  #trees = [];
  #sideways = null;

  constructor(store, spotlight) {
    this.#store = store;
    this.#spotlight = spotlight;
    store.on(["answer", "sentence"], () => this.show());
    store.on(["tree"], () => this.#choose());
    spotlight.on((spot) => this.#views.forEach((view) => view.light(spot)));
    this.#listen();
  }

  /** The nodes of the chosen tree, or null where there is none. */
  get chosen() {
    return this.#trees[this.#store.now.tree] ?? null;
  }

  /** Draw the trees of the chosen sentence. */
  show() {
    const { answer, sentence } = this.#store.now;
    const one = answer?.sentences[sentence] ?? null;
    this.#trees = (one?.parses ?? []).map((parse) => treeOf(one, parse));
    this.#views = this.#trees.map((_, number) => new TreeView({
      label: `Tree ${number + 1}`,
      onSpot: (spot) => this.#spotlight.turn(spot),
      onRead: showReading,
    }));
    showStatus(one);
    byId("tree-tools").hidden = this.#trees.length === 0;
    byId("trees").replaceChildren(...this.#views.map((view, number) =>
      this.#card(view, number, one)));
    byId("trees").classList.toggle("several", this.#views.length > 1);
    this.#draw();
    this.#choose();
  }

  /** Fit the trees to the room they have now; what is folded stays so. */
  refit() {
    this.#draw();
  }

  #card(view, number, sentence) {
    const parse = sentence.parses[number];
    const several = sentence.parses.length > 1;
    const choice = html("input", {
      type: "radio",
      name: "tree",
      value: number,
      on: { change: () => this.#store.set({ tree: number }) },
    });
    return html(
      "article",
      { class: "card", "data-tree": number },
      html(
        "header",
        {},
        several ? html("label", {}, choice, ` Tree ${number + 1}`) : html("b", {}, "Tree"),
        html("span", { class: "muted" }, `log p(tree) ${log(parse.log_probability)}`),
        html("span", { class: "muted" }, `score ${log(parse.score)}`),
        parse.sign !== null && parse.sign < 0
          ? html("span", { class: "badge" }, "p(tree) is negative") : null,
      ),
      number === 0 ? null : differences(this.#trees[0], this.#trees[number], sentence.tokens),
      view.element,
    );
  }

  #draw() {
    const marks = this.#trees.length > 1 ? distinctive(this.#trees) : [new Set()];
    this.#views.forEach((view, number) => {
      const marked = new Map([...marks[number]].map((node) => [node.id, DIFFERENT]));
      const options = { marks: marked, folded: view.folded };
      view.show(this.#trees[number], { ...options, sideways: this.#sideways ?? false });
      if (this.#sideways === null && isTooWide(view)) {
        view.show(this.#trees[number], { ...options, sideways: true });
      }
    });
    const isSideways = this.#views[0]?.drawing.sideways ?? false;
    byId("turn").setAttribute("aria-pressed", String(isSideways));
  }

  #choose() {
    const { tree } = this.#store.now;
    for (const card of byId("trees").children) {
      const isChosen = Number(card.dataset.tree) === tree;
      card.classList.toggle("chosen", isChosen && this.#trees.length > 1);
      const choice = card.querySelector("input");
      if (choice) choice.checked = isChosen;
    }
  }

  // Tools -----------------------------------------------------------------------------------------

  #listen() {
    const each = (action) => () => this.#views.forEach((view) => view[action]());
    const actions = {
      "zoom-in": each("zoomIn"),
      "zoom-out": each("zoomOut"),
      fit: each("fit"),
      turn: () => this.#turn(),
      fold: () => this.#foldAll(),
      "copy-brackets": () => this.#copy("brackets"),
      "copy-json": () => this.#copy("JSON"),
      "save-brackets": () => save(this.#brackets(), "tree.mrg", "text/plain"),
      "save-json": () => save(this.#json(), "tree.json", "application/json"),
      "save-svg": () => save(svgPicture(this.#chosenView.drawing), "tree.svg", "image/svg+xml"),
      "save-png": async () => save(
        await pngPicture(this.#chosenView.drawing), "tree.png", "image/png",
      ),
    };
    byId("menu").addEventListener("focusout", ({ relatedTarget }) => {
      if (!byId("menu").contains(relatedTarget)) byId("menu").open = false;
    });
    byId("menu").addEventListener("keydown", ({ key }) => {
      if (key === "Escape") closeMenu();
    });
    for (const [id, action] of Object.entries(actions)) {
      byId(id).addEventListener("click", async () => {
        try {
          await action();
        } catch (error) {
          say(error.message);
        }
      });
    }
  }

  get #chosenView() {
    return this.#views[this.#store.now.tree];
  }

  #turn() {
    this.#sideways = byId("turn").getAttribute("aria-pressed") !== "true";
    this.#draw();
  }

  /** Fold all phrases without phrases in them; where they are folded, unfold everything. */
  #foldAll() {
    this.#views.forEach((view, number) => {
      const nodes = this.#trees[number];
      const lowest = nodes.filter(isLowest).map((node) => node.id);
      const folded = lowest.every((id) => view.folded.has(id)) ? [] : lowest;
      view.show(nodes, { folded, marks: view.marks, sideways: view.drawing.sideways });
    });
  }

  #brackets() {
    const { answer, sentence, tree } = this.#store.now;
    return `${answer.sentences[sentence].parses[tree].tree}\n`;
  }

  /** Return the service's answer to the sentence, unchanged. */
  #json() {
    const { answer, sentence } = this.#store.now;
    const told = { model: answer.model, sentences: [answer.sentences[sentence]] };
    return `${JSON.stringify(told, null, 2)}\n`;
  }

  async #copy(what) {
    await copy(what === "JSON" ? this.#json() : this.#brackets());
    say(`Copied as ${what}.`);
  }
}

function closeMenu() {
  byId("menu").open = false;
  byId("menu").querySelector("summary").focus();
}

function isLowest(node) {
  return node.children.length > 1 && node.children.every((child) => child.word !== null);
}

function isTooWide(view) {
  const room = view.element.clientWidth;
  return room > 0 && view.drawing.width > TOO_WIDE * room;
}

function say(words) {
  byId("told").textContent = words;
}

function showReading(reading) {
  const line = byId("reading");
  if (reading === null) {
    line.replaceChildren(html("span", { class: "muted" }, "Point at a node, or walk with arrow keys."));
    return;
  }
  const { label, where, words, probability, mark } = reading;
  line.replaceChildren(...[
    html("b", {}, label),
    html("span", { class: "number" }, probability === null ? "" : exact(probability)),
    html("q", {}, words),
    html("span", { class: "muted" }, where),
    mark === null ? null : html("span", { class: "badge" }, mark),
  ].filter(Boolean));
}

function showStatus(sentence) {
  const line = byId("sentence-status");
  const isWhole = sentence === null || sentence.status === "parsed";
  line.hidden = isWhole;
  if (isWhole) return;
  const lead = sentence.status === "partial"
    ? "There is no tree for the whole sentence; the pieces that have one stand side by side."
    : "There is no tree for this sentence.";
  line.textContent = sentence.reason ? `${lead} Reason: ${sentence.reason}.` : lead;
}

/** What one tree has instead of what the first has, in words. */
function differences(first, nodes, tokens) {
  const rows = [
    ...missingFrom(first, nodes).map((node) => ["only here", node]),
    ...missingFrom(nodes, first).map((node) => ["only in tree 1", node]),
  ];
  const items = rows.map(([where, node]) => html(
    "li",
    {},
    html("b", {}, node.label),
    " ",
    html("q", {}, wordsOf(tokens, node.start, node.end)),
    html("span", { class: "muted" }, ` ${where}, ${wordRange(node.start, node.end)}`),
  ));
  const title = `Differs from tree 1 in ${rows.length === 1 ? "one node" : `${rows.length} nodes`}`;
  const open = rows.length <= FEW;
  return html("details", { class: "differences", open }, html("summary", {}, title), html("ul", {}, ...items));
}
