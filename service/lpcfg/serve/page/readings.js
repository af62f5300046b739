/**
 * What the model says of a sentence in numbers that people understand, and its readings to choose.
 */

import { rivalOf } from "./compare.js";
import { byId, html } from "./dom.js";
import { confidenceOf, doubtfulNodes, isKnown, isUnusual } from "./doubt.js";
import { NEGATIVE, factList } from "./facts.js";
import { log, percent } from "./numbers.js";

/** A share of the readings smaller than this says little: there are too many of them. */
const TELLING = 0.01;
const UNUSUAL = "Unlike the training text";
const WHY = "This sentence surprises the model more than 99 % of those it learned from: trust it less.";

/**
 * Show the readings of the chosen sentence.
 *
 * @param trees  has `chosen`, the nodes of the tree shown, and `nextDoubt`, which goes to the next
 */
export function showReadings(store, trees) {
  byId("next-doubt").addEventListener("click", () => trees.nextDoubt());
  store.on(["one", "tree"], ({ one, tree }) => {
    const parse = one?.parses[tree] ?? null;
    byId("readout").hidden = parse === null;
    byId("unusual").hidden = one === null || !isUnusual(one);
    byId("unusual").textContent = UNUSUAL;
    byId("unusual").title = WHY;
    if (parse === null) return;
    byId("verdict").replaceChildren(...verdict(one.parses, tree, confidenceOf(one)));
    const doubts = doubtfulNodes(trees.chosen).length;
    byId("next-doubt").textContent = doubts > 0 ? `${doubts} in doubt` : "Sure of every node";
    byId("next-doubt").title = doubts > 0 ? "Go to the next node in doubt" : "";
    byId("next-doubt").disabled = doubts === 0;
    byId("next-doubt").hidden = !trees.chosen.some(({ probability }) => isKnown(probability));
    byId("readings").hidden = one.parses.length < 2;
    chooseReadings(store, one.parses, tree);
    byId("facts").replaceChildren(facts(one, parse));
  });
}

/** The share of this reading and of the likeliest other; of a long sentence, how much is right. */
function verdict(parses, tree, { right, of }) {
  const own = parses[tree].probability;
  if (of === 0) return [html("b", {}, "Only pieces"), html("span", { class: "muted" }, ": no tree spans all words")];
  const reading = `his reading: ${percent(own)}`;
  if (own === null || own < TELLING) {
    return [
      html("b", {}, `About ${Math.round(right)} of ${of} nodes right`),
      html("span", { class: "muted" }, own === null ? "" : `; t${reading}`),
    ];
  }
  const other = parses[rivalOf(parses, tree)]?.probability ?? null;
  const rest = other === null ? "" : `; ${other > own ? "another" : "next"}: ${percent(other)}`;
  return [html("b", {}, `T${reading}`), html("span", { class: "muted" }, rest)];
}

/** One radio button for each reading; they stay where they are, so that keys can walk on. */
function chooseReadings(store, parses, tree) {
  const box = byId("readings");
  if (box.querySelectorAll("input").length !== parses.length) {
    box.replaceChildren(html("legend", { class: "hidden" }, "Readings"), ...parses.map((_, number) =>
      html("label", {}, html("input", {
        type: "radio",
        name: "tree",
        value: number,
        on: { change: () => store.set({ tree: number, selected: null, moved: null }) },
      }), html("span", {}))));
  }
  box.querySelectorAll("label").forEach((label, number) => {
    label.querySelector("input").checked = number === tree;
    label.title = `Reading ${number + 1}: ${percent(parses[number].probability)}`;
    label.querySelector("span").replaceChildren(
      `${number + 1}`,
      html("span", { class: "share" }, `: ${percent(parses[number].probability)}`),
    );
  });
}

function facts(one, parse) {
  const confidence = confidenceOf(one);
  return factList([
    ["Nodes expected to be right", `${confidence.right.toFixed(1)} of ${confidence.of}`],
    ["p(tree | sentence)", percent(parse.probability)],
    ["log p(tree)", log(parse.log_probability)],
    parse.sign < 0 ? ["Sign of p(tree)", NEGATIVE] : null,
    ["log p(sentence)", log(one.log_probability)],
    ["Score under the objective", log(parse.score)],
    one.unusual === null || one.unusual === undefined ? null
      : ["Surprises more than", `${one.unusual.toFixed(0)} % of training sentences`],
  ]);
}
