/**
 * The gallery: a dozen sentences, parsed by the service, each with what it shows.
 */

import { treeOf } from "./analysis.js";
import { Problem, Service, insist } from "./api.js";
import { byId, html } from "./dom.js";
import { confidenceOf, doubtfulNodes } from "./doubt.js";
import { EXAMPLES } from "./examples.js";
import { count, percent } from "./numbers.js";
import { followTheme } from "./theme.js";
import { TreeView } from "./tree-view.js";

/** Longer texts, in characters, get the whole width. */
const LONG = 200;

followTheme();
const views = EXAMPLES.map((example) => card(example));
byId("gallery").append(...views.map(({ element }) => element));
await draw();

function card({ name, text, shows }) {
  const view = new TreeView({ label: `Tree of: ${text}` });
  const told = html("span", {}, "…");
  const link = html("a", { href: `./#${new URLSearchParams({ text })}` }, "Open it");
  const element = html(
    "article",
    { class: text.length > LONG ? "card wide" : "card" },
    html("header", {}, html("h3", {}, name), html("blockquote", {}, text), html("p", { class: "muted" }, shows)),
    view.element,
    html("footer", {}, told, link),
  );
  return { element, view, told };
}

async function draw() {
  try {
    const sentences = EXAMPLES.map(({ text }) => text);
    const answer = await insist(() => new Service().parse({ sentences, k: 2 }));
    byId("model-name").textContent = `${answer.model.name}@${answer.model.version}`;
    answer.sentences.forEach((sentence, number) => fill(views[number], sentence));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    byId("problem").hidden = false;
    byId("problem").textContent = `${error.body.title}: ${error.message}`;
  }
  byId("gallery").setAttribute("aria-busy", "false");
}

function fill({ view, told }, sentence) {
  const [first] = sentence.parses;
  if (first === undefined) {
    told.textContent = `No tree: ${sentence.reason}.`;
    return;
  }
  const nodes = treeOf(sentence, first);
  view.show(nodes);
  if (sentence.status !== "parsed") {
    told.textContent = "No tree spans all words: these are the likeliest pieces.";
    return;
  }
  const { right, of } = confidenceOf(sentence);
  told.textContent = [
    `This reading: ${percent(first.probability)}`,
    `about ${Math.round(right)} of ${count(of, "node")} right`,
    `${doubtfulNodes(nodes).length} in doubt`,
  ].join(" · ");
}
