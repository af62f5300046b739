/**
 * The reader's corrections of the chosen sentence, to be undone one by one, and the small treebank
 * that corrected trees are collected in.
 */

import { wordsOf } from "./analysis.js";
import { askedOf, correctionOf, listed } from "./corrections.js";
import { byId, html } from "./dom.js";
import { save } from "./files.js";
import { keep, kept } from "./kept.js";
import { count } from "./numbers.js";

const KEY = "treebank";

/** Show what was corrected, and let the reader undo, keep and download it. */
export function showCorrections(store, session) {
  byId("undo").addEventListener("click", () => session.step(-1));
  byId("redo").addEventListener("click", () => session.step(1));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select");
    if (typing || event.key !== "z" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    session.step(event.shiftKey ? 1 : -1);
  });
  store.on(["one"], (state) => {
    const correction = correctionOf(state);
    byId("corrections").hidden = correction === null;
    if (correction === null) return;
    byId("undo").disabled = correction.at === 0;
    byId("redo").disabled = correction.at === correction.steps.length - 1;
    const asked = listed(askedOf(correction));
    byId("asked").replaceChildren(...asked.map((one) => html("li", {}, html("button", {
      type: "button",
      "aria-label": `Ask no more: ${inWords(one, state.one.tokens)}`,
      on: { click: () => session.withdraw(one) },
    }, `${inWords(one, state.one.tokens)} ✕`))));
  });
  collectTrees(store);
}

function inWords({ start, end, label, tag, forbid }, tokens) {
  const words = wordsOf(tokens, start, end);
  if (tag !== undefined) return `“${words}” is ${tag}`;
  return forbid ? `no constituent “${words}”` : `${label ?? "any label"} over “${words}”`;
}

/** Collect trees, one for each sentence, until the reader clears them. */
function collectTrees(store) {
  const trees = new Map(kept(KEY, []));
  const show = () => {
    keep(KEY, [...trees]);
    byId("treebank-size").textContent = `Your treebank: ${count(trees.size, "tree")}`;
    byId("save-treebank").disabled = trees.size === 0;
    byId("clear-treebank").disabled = trees.size === 0;
  };
  const add = () => {
    const { one, tree } = store.now;
    trees.set(one.text, one.parses[tree].tree);
    show();
    byId("told").textContent = `Added: your treebank has ${count(trees.size, "tree")}.`;
  };
  byId("keep-tree").addEventListener("click", add);
  byId("add-tree").addEventListener("click", add);
  byId("save-treebank").addEventListener("click", () => {
    save([...trees.values()].map((tree) => `${tree}\n`).join(""), "corrected.mrg", "text/plain");
  });
  byId("clear-treebank").addEventListener("click", () => {
    if (!window.confirm(`Clear your treebank of ${count(trees.size, "tree")}?`)) return;
    trees.clear();
    show();
  });
  show();
}
