/**
 * The tree of the chosen sentence, alone or beside another: another reading, another model's tree,
 * or the tree without the rescoring layer.
 */

import { treeOf, wordsOf } from "./analysis.js";
import { distinctive, foldedAround, missingFrom, rivalOf } from "./compare.js";
import { byId, html } from "./dom.js";
import { doubtfulNodes } from "./doubt.js";
import { count, wordRange } from "./numbers.js";
import { TreeView } from "./tree-view.js";

const DIFFERENT = { kind: "differs", sign: "≠", words: "not in the other tree" };
const MOVED = { kind: "moved", sign: "•", words: "changed by your last step" };
/** The most differences shown at once; a button shows more. */
const FEW = 4;

export class TreesView {
  #store;
  #hover;
  #panes = [];
  #trees = [];
  #turned = null;
  #doubt = -1;

  constructor(store, hover) {
    this.#store = store;
    this.#hover = hover;
    store.on(["one"], ({ one }) => {
      this.#trees = (one?.parses ?? []).map((parse) => treeOf(one, parse));
    });
    store.on(["one", "tree", "other", "compare", "against"], () => this.show());
    store.on(["moved"], ({ moved }) => {
      if (moved === null) this.#unmark();
    });
    store.on(["selected"], ({ selected }) => {
      // a node is chosen in the tree that it belongs to; words are chosen in the first
      if (selected?.id === undefined) this.#panes[0]?.view.choose(selected);
    });
    hover.on((spot) => this.#panes.forEach(({ view }) => view.light(spot)));
  }

  /** The nodes of the chosen tree, or null where there is none. */
  get chosen() {
    return this.#trees[this.#store.now.tree] ?? null;
  }

  /** The chosen tree as it is placed on the screen. */
  get drawing() {
    return this.#panes[0].view.drawing;
  }

  /** Draw the tree of the chosen sentence, and what it is compared with. */
  show() {
    const { one } = this.#store.now;
    this.#doubt = -1;
    showStatus(one);
    byId("tree-tools").hidden = this.#trees.length === 0;
    this.#panes = this.chosen === null ? [] : this.#contents();
    byId("trees").replaceChildren(...this.#panes.map((pane) => pane.card));
    byId("trees").classList.toggle("several", this.#panes.length > 1);
    const folded = this.#panes.length > 1
      ? foldedAround(this.#panes[0].nodes, this.#panes[1].nodes) : [new Set()];
    this.#panes.forEach(({ view, nodes, marks }, number) => {
      view.show(nodes, { marks, turned: this.#turned, folded: folded[number] });
    });
    this.#showDifference();
    this.#tellTurned();
  }

  /** Fit the trees to the room they have now; what is folded stays so. */
  refit() {
    for (const { view, nodes } of this.#panes) {
      view.show(nodes, { marks: view.marks, turned: this.#turned, folded: view.folded });
    }
    this.#tellTurned();
  }

  /** Move a node of the chosen tree to the middle and choose it. */
  reveal(node) {
    const [{ view }] = this.#panes;
    view.reveal(node);
    view.choose(node);
    this.#store.set({ selected: node, moved: null });
  }

  /** Go to the next node in doubt, in reading order. */
  nextDoubt() {
    const doubts = doubtfulNodes(this.chosen).sort((a, b) => a.id - b.id);
    if (doubts.length === 0) return;
    this.#doubt = (this.#doubt + 1) % doubts.length;
    this.reveal(doubts[this.#doubt]);
  }

  /** Fold or unfold a node of the chosen tree. */
  toggle(node) {
    this.#panes[0].view.toggle(node.id);
  }

  /** Let the keys walk on in the chosen tree. */
  focus() {
    this.#panes[0]?.view.picture.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }

  /** Do something with each tree on the screen. */
  each(action) {
    for (const { view } of this.#panes) view[action]();
  }

  turn() {
    this.#turned = !this.drawing.sideways;
    this.refit();
  }

  /** Fold all nodes that `isWanted`; where they are folded already, unfold everything. */
  foldAll(isWanted) {
    for (const { view, nodes } of this.#panes) {
      const wanted = nodes.filter(isWanted).map((node) => node.id);
      const folded = wanted.every((id) => view.folded.has(id)) ? [] : wanted;
      view.show(nodes, { folded, marks: view.marks, turned: this.#turned });
    }
  }

  // Contents --------------------------------------------------------------------------------------

  #contents() {
    const other = this.#compared();
    const nodes = this.chosen;
    byId("differences").hidden = other === null;
    if (other === null) return [this.#pane("The tree", nodes, this.#moved(nodes), null)];
    const [own, others] = distinctive([nodes, other.nodes]).map((some) =>
      new Map([...some].map((node) => [node.id, DIFFERENT])));
    const told = differences({ title: other.own, nodes }, other, this.#store.now.one.tokens);
    byId("differences").replaceChildren(told);
    return [
      this.#pane(other.own, nodes, own, html("b", {}, other.own)),
      this.#pane(other.title, other.nodes, others, html("b", {}, other.title)),
    ];
  }

  /** The tree beside the chosen one, its title, and the chosen one's (`own`); null without any. */
  #compared() {
    const { compare, against, tree, other, one, answer } = this.#store.now;
    if (!compare) return null;
    if (against === "") {
      const number = rivalOf(one.parses, tree);
      const title = (reading) => `Reading ${reading + 1}`;
      return number === undefined ? null : { own: title(tree), title: title(number), nodes: this.#trees[number] };
    }
    if (!other?.sentence.parses.length) return null;
    const titles = against === "plain" ? { own: "With rescoring", title: "Without rescoring" }
      : { own: nameOf(answer.model), title: nameOf(other.model) };
    return { ...titles, nodes: treeOf(other.sentence, other.sentence.parses[0]) };
  }

  /** What the last correction changed. */
  #moved(nodes) {
    const { moved } = this.#store.now;
    if (!moved?.parses.length) return new Map();
    const before = treeOf(moved, moved.parses[0]);
    const found = missingFrom(before, nodes);
    const gone = missingFrom(nodes, before).length;
    byId("moved-told").textContent = found.length + gone === 0 ? "Nothing else changed."
      : `Changed: ${count(found.length, "node")} new, ${gone} gone.`;
    return new Map(found.map((node) => [node.id, MOVED]));
  }

  #unmark() {
    byId("moved-told").textContent = "";
    if (this.#panes.length === 1 && this.#panes[0].view.marks.size > 0) {
      this.#panes[0].view.mark(new Map());
    }
  }

  #pane(label, nodes, marks, title) {
    const view = new TreeView({
      label,
      onSpot: (spot) => this.#hover.turn(spot),
      onChoose: (selected) => this.#store.set({ selected, moved: null }),
    });
    const card = html("article", { class: "card" }, title && html("header", {}, title), view.element);
    return { view, nodes, marks, card };
  }

  /** Move each tree of a pair to the first node that the other lacks, or to its root. */
  #showDifference() {
    if (this.#panes.length < 2) return;
    for (const { view, nodes, marks } of this.#panes) {
      const [first] = marks.keys();
      if (first !== undefined) view.reveal(nodes[first]);
    }
  }

  #tellTurned() {
    const isSideways = this.#panes.length > 0 && this.drawing.sideways;
    byId("turn").setAttribute("aria-pressed", String(isSideways));
  }
}

function showStatus(sentence) {
  const line = byId("sentence-status");
  line.hidden = sentence?.status !== "failed";
  if (!line.hidden) line.textContent = `There is no tree for this sentence. Reason: ${sentence.reason}.`;
}

function nameOf({ name, version }) {
  return `${name}@${version}`;
}

/** What each of two trees has instead of what the other has, in words. */
function differences(one, other, tokens) {
  const rows = [
    ...missingFrom(other.nodes, one.nodes).map((node) => [`only in: ${one.title}`, node]),
    ...missingFrom(one.nodes, other.nodes).map((node) => [`only in: ${other.title}`, node]),
  ];
  if (rows.length === 0) return html("p", { class: "muted" }, "Both trees are the same.");
  const items = rows.map(([where, node]) => html(
    "li",
    {},
    html("b", {}, node.label),
    " ",
    html("q", {}, wordsOf(tokens, node.start, node.end)),
    html("span", { class: "muted" }, ` ${where}, ${wordRange(node.start, node.end)}`),
  ));
  const title = rows.length === 1 ? "One node differs" : `${rows.length} nodes differ`;
  const open = rows.length <= FEW;
  return html("details", { class: "differences", open }, html("summary", {}, title), html("ul", {}, ...items));
}
