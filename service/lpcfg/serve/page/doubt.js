/**
 * How sure the model is of a node, in four levels that look different in colour and in shape.
 *
 *     sure      0.95 and more   plain, no number
 *     likely    0.80 to 0.95    number and gauge
 *     unsure    0.50 to 0.80    amber, number and gauge
 *     doubtful  below 0.50      red, broken outline, number and gauge
 */

import { percent } from "./numbers.js";

/** From here on a node needs no number. */
export const SURE = 0.95;
const LEVELS = [[SURE, "sure"], [0.8, "likely"], [0.5, "unsure"], [0, "doubtful"]];
/** The sentence surprises the model more than this percentage of its training sentences. */
const UNUSUAL = 99;

/** Return true if there is a probability: pieces, and tags that are not the likeliest, have none. */
export function isKnown(probability) {
  return probability !== null && probability !== undefined;
}

/** The level of a probability; an unknown one is not in doubt. */
export function levelOf(probability) {
  if (!isKnown(probability)) return "sure";
  return LEVELS.find(([least]) => probability >= least)?.[1] ?? "doubtful";
}

/** The number that stands in a node: none where the model is sure. */
export function numberOf(probability) {
  // a node in doubt never shows the 95 % of a sure one, even where it rounds to it
  return levelOf(probability) === "sure" ? "" : `${Math.min(94, Math.round(100 * probability))}%`;
}

/** How sure the model is, in words. */
export function sureness(probability) {
  if (!isKnown(probability)) return "no probability";
  return `${percent(probability)} sure`;
}

/** The nodes in doubt, the least sure first. */
export function doubtfulNodes(nodes) {
  return nodes
    .filter((node) => levelOf(node.probability) !== "sure")
    .sort((a, b) => a.probability - b.probability);
}

/**
 * How many constituents and tags of a parse are right, as expected: { right, of, doubts }.
 *
 * `doubts` counts those below SURE. Null for a sentence without a tree.
 */
export function confidenceOf(sentence) {
  const parse = sentence.parses[0];
  if (!parse) return null;
  const known = [...parse.constituents, ...sentence.tokens]
    .map((one) => one.probability)
    .filter(isKnown);
  return {
    right: known.reduce((sum, probability) => sum + probability, 0),
    of: known.length,
    doubts: known.filter((probability) => probability < SURE).length,
  };
}

/** Return true if the sentence is unlike what the model was trained on. */
export function isUnusual(sentence) {
  return sentence.unusual !== null && sentence.unusual !== undefined && sentence.unusual > UNUSUAL;
}
