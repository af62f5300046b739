/**
 * The gallery: a dozen sentences, parsed by the service, each with what it shows.
 */

import { treeOf } from "./analysis.js";
import { Problem, Service } from "./api.js";
import { byId, html } from "./dom.js";
import { confidenceOf, doubtfulNodes } from "./doubt.js";
import { EXAMPLES } from "./examples.js";
import { count, percent } from "./numbers.js";
import { followTheme } from "./theme.js";
import { TreeView } from "./tree-view.js";

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
    { class: "card" },
    html("header", {}, html("h3", {}, name), html("blockquote", {}, text), html("p", { class: "muted" }, shows)),
    view.element,
    html("footer", {}, told, link),
  );
  return { element, view, told };
}

async function draw() {
  try {
    const sentences = EXAMPLES.map(({ text }) => text);
    const answer = await new Service().parse({ sentences, k: 2, objective: "max-rule" });
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
  const [first, second] = sentence.parses;
  if (first === undefined) {
    told.textContent = `No tree: ${sentence.reason}.`;
    return;
  }
  const nodes = treeOf(sentence, first);
  view.show(nodes);
  const { right, of } = confidenceOf(sentence);
  told.textContent = [
    `this reading: ${percent(first.probability)}`,
    second ? `next: ${percent(second.probability)}` : null,
    `${right.toFixed(1)} of ${count(of, "node")} expected to be right`,
    `${doubtfulNodes(nodes).length} in doubt`,
  ].filter(Boolean).join(" · ");
}
