/**
 * Asking for a tree: brackets in; its probability out, or what the grammar lacks, in the tree.
 */

import { readTree, splitTrees } from "./brackets.js";
import { byId, html } from "./dom.js";
import { NEGATIVE, factList } from "./facts.js";
import { count, log, percent } from "./numbers.js";
import { TreeView } from "./tree-view.js";

const LACKING = { kind: "lacking", sign: "!", words: "the grammar has no such rule or word" };

const PARTS = "The grammar joins two at a time: @VP<NP stands for the first children of a VP, up to an "
  + "NP; VP|VBZ for a VP whose only child is a VBZ.";

/** Let the reader ask for trees. */
export function showScores(store, session) {
  const box = byId("brackets");
  let pieces = [];
  const ask = (event) => {
    event.preventDefault();
    pieces = splitTrees(box.value);
    if (pieces.length > 0) session.score(pieces.map((piece) => piece.text));
  };
  byId("score-form").addEventListener("submit", ask);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(event);
  });
  byId("use-tree").addEventListener("click", () => {
    const { one, tree } = store.now;
    box.value = one?.parses[tree]?.tree ?? box.value;
    box.focus();
  });
  store.on(["scores"], ({ scores }) => {
    const views = [];
    const cards = (scores?.trees ?? []).map((one, number) => one.problem
      ? problemCard(one.problem, number, pieces[number], box)
      : scoreCard(one, scores.nodes[number] ?? [], number, views));
    byId("scores").replaceChildren(...cards);
    for (const { view, nodes, marks } of views) view.show(nodes, { marks });
  });
}

function scoreCard(score, posteriors, number, views) {
  const nodes = withProbabilities(readTree(score.tree), posteriors);
  const marks = new Map(score.missing.map((id) => [id, LACKING]));
  const view = new TreeView({ label: `Tree ${number + 1}, as it was scored` });
  views.push({ view, nodes, marks });
  return html(
    "article",
    { class: "card" },
    html("header", {}, html("b", {}, `Tree ${number + 1}`), ...verdict(score)),
    ...reason(score),
    facts(score),
    view.element,
  );
}

/** Give each node its posterior; a node that no analysis has gets 0, a tag none. */
function withProbabilities(nodes, posteriors) {
  const known = new Map(posteriors.map(({ label, start, end, probability }) =>
    [`${start} ${end} ${label}`, probability]));
  for (const node of nodes) {
    node.probability = node.word !== null ? null
      : known.get(`${node.start} ${node.end} ${node.label}`) ?? 0;
  }
  return nodes;
}

/** The share of the tree among all trees of its sentence, or that it has none. */
function verdict({ sign, missing, conditional_log_probability: conditional }) {
  if (sign === 0) {
    const what = missing.length > 0 ? `${count(missing.length, "place")} marked` : "see why";
    return [html("span", { class: "badge" }, `probability 0 (${what})`)];
  }
  if (conditional === null) return [html("span", { class: "muted" }, "Its share is unknown.")];
  return [
    html("span", { class: "verdict" }, percent(Math.exp(conditional))),
    html("span", { class: "muted" }, "of the probability of all trees of these words"),
  ];
}

function facts(score) {
  const conditional = score.conditional_log_probability;
  const rows = factList([
    ["log p(tree)", score.sign === 0 ? "−∞" : log(score.log_probability)],
    score.sign < 0 ? ["Sign of p(tree)", NEGATIVE] : null,
    ["log p(sentence)", log(score.sentence_log_probability)],
    ["log p(tree | sentence)", log(conditional)],
  ]);
  return html("details", { class: "numbers" }, html("summary", {}, "Numbers"), rows);
}

function reason(score) {
  if (score.reason === null) return [];
  const told = html("p", { class: "reason" }, "Why: ", ...withCode(score.reason), ".");
  return score.reason.includes("@") ? [told, html("p", { class: "muted" }, PARTS)] : [told];
}

/** Text in which what stands in backticks is code. */
function withCode(words) {
  return words.split("`").map((part, number) => (number % 2 === 0 ? part : html("code", {}, part)));
}

/** A tree that could not be read; the button leads to the place. */
function problemCard(problem, number, piece, box) {
  const place = offsetOf(piece.text, problem);
  const where = place === null ? null : html("button", {
    type: "button",
    on: {
      click: () => {
        box.focus();
        box.setSelectionRange(piece.start + place, piece.start + place + 1);
      },
    },
  }, "Show the place");
  const lead = place === null ? "" : `Line ${problem.line} of this tree, column ${problem.column}: `;
  return html(
    "article",
    { class: "card failed" },
    html("header", {}, html("b", {}, `Tree ${number + 1}`),
      html("span", { class: "badge" }, problem.title)),
    html("p", {}, `${lead}${problem.detail}.`),
    where,
  );
}

/** Where in a text a line and a column (in code points, from 1) are; null without them. */
function offsetOf(text, { line, column }) {
  if (line === undefined || column === undefined) return null;
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return before + Array.from(lines[line - 1] ?? "").slice(0, column - 1).join("").length;
}
