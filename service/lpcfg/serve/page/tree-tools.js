/**
 * The tools over the tree: its size and folds, comparing, and taking it away.
 */

import { corrected } from "./corrections.js";
import { byId, html } from "./dom.js";
import { SURE } from "./doubt.js";
import { bracketLines, forest, jsonLines } from "./exports.js";
import { copy, save } from "./files.js";
import { pngPicture, svgPicture } from "./picture.js";

/** Let the reader use the tools. */
export function showTreeTools(store, trees, session, models) {
  const brackets = () => `${store.now.one.parses[store.now.tree].tree}\n`;
  const json = () => {
    const { answer, one } = store.now;
    return `${JSON.stringify({ model: answer.model, sentences: [one] }, null, 2)}\n`;
  };
  const all = () => store.now.answer.sentences.map((one) => corrected(store.now, one));
  actOn({
    "zoom-in": () => trees.each("zoomIn"),
    "zoom-out": () => trees.each("zoomOut"),
    fit: () => trees.each("fit"),
    turn: () => trees.turn(),
    fold: () => trees.foldAll(isLowest),
    "fold-sure": () => trees.foldAll(isSure),
    "copy-brackets": () => copied(brackets(), "brackets"),
    "copy-json": () => copied(json(), "JSON"),
    "save-brackets": () => save(brackets(), "tree.mrg", "text/plain"),
    "save-json": () => save(json(), "tree.json", "application/json"),
    "save-forest": () => save(forest([brackets()]), "tree.tex", "application/x-tex"),
    "save-svg": () => save(svgPicture(trees.drawing), "tree.svg", "image/svg+xml"),
    "save-png": async () => save(await pngPicture(trees.drawing), "tree.png", "image/png"),
    "all-brackets": () => save(bracketLines(all()), "trees.mrg", "text/plain"),
    "all-json": () => save(jsonLines(store.now.answer, all()), "trees.jsonl", "application/jsonl"),
    "all-conllu": async () => save(await session.readConllu(), "trees.conllu", "text/plain"),
    "all-forest": () => save(
      forest(all().flatMap(({ parses }) => parses.slice(0, 1).map(({ tree }) => tree))),
      "trees.tex",
      "application/x-tex",
    ),
  });
  chooseComparison(store, session, models);
}

function actOn(actions) {
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

async function copied(text, what) {
  await copy(text);
  say(`Copied as ${what}.`);
}

function say(words) {
  byId("told").textContent = words;
}

function isLowest(node) {
  return node.children.length > 1 && node.children.every((child) => child.word !== null);
}

/** A phrase of which the model doubts nothing. */
function isSure(node) {
  if (node.parent === null || node.children.length === 0) return false;
  const doubts = (one) => (one.probability ?? 1) < SURE || one.children.some(doubts);
  return !doubts(node);
}

/** Compare with another reading, with another model, or with the tree without rescoring. */
function chooseComparison(store, session, models) {
  byId("compare").addEventListener("click", () => {
    store.set({ compare: !store.now.compare, selected: null, moved: null });
  });
  byId("against").addEventListener("change", ({ target }) => store.set({ against: target.value }));
  store.on(["models", "model"], ({ model, against }) => {
    const others = models.all.filter((one) => one.name !== (model || models.current?.name));
    byId("against").replaceChildren(
      html("option", { value: "" }, "another reading"),
      ...others.map(({ name, version }) => html("option", { value: name }, `${name}@${version}`)),
      ...(models.current?.rescoring ? [html("option", { value: "plain" }, "without rescoring")] : []),
    );
    byId("against").value = against;
  });
  store.on(["compare", "against", "one"], ({ compare, against, one }) => {
    byId("compare").setAttribute("aria-pressed", String(compare));
    byId("against").hidden = !compare || byId("against").options.length < 2;
    byId("against").value = against;
    if (!compare || against === "" || one === null) return;
    session.readOther(against === "plain" ? { rescore: false } : { model: against, rescore: true });
  });
}
