/**
 * Prepares one sentence of an answer for drawing: nodes with their probabilities and words.
 */

import { readTree } from "./brackets.js";

/**
 * Return the nodes of a parse in pre-order, with the service's facts about each.
 *
 * Constituents are those of the tree in pre-order, tags left out; a tag has a probability where
 * it is the tag its token has in the best tree. Throws if tree and constituents disagree.
 */
export function treeOf(sentence, parse) {
  const nodes = readTree(parse.tree);
  const constituents = parse.constituents.values();
  for (const node of nodes) {
    if (node.word === null) {
      node.probability = probabilityOf(node, constituents.next().value);
    } else {
      const token = sentence.tokens[node.start];
      node.word = token.text;
      node.probability = token.tag === node.label ? token.probability : null;
    }
  }
  if (!constituents.next().done) throw new Error("the answer has constituents without a node");
  return nodes;
}

function probabilityOf(node, constituent) {
  const { label, start, end } = node;
  if (constituent?.label === label && constituent.start === start && constituent.end === end) {
    return constituent.probability;
  }
  throw new Error(`the answer has no constituent for ${label} over ${start} to ${end}`);
}

/** Join the words from start to end. */
export function wordsOf(tokens, start, end) {
  return tokens.slice(start, end).map((token) => token.text).join(" ");
}

/** Of more words than this the middle ones are left out. */
const FEW = 5;

/** Join the words from start to end, without the middle ones where there are many. */
export function endsOf(tokens, start, end) {
  if (end - start <= FEW) return wordsOf(tokens, start, end);
  return `${wordsOf(tokens, start, start + 2)} … ${wordsOf(tokens, end - 2, end)}`;
}

/** Return true if two spans cross: they share words, and neither holds the other. */
export function cross(a, b) {
  return (a.start < b.start && b.start < a.end && a.end < b.end)
    || (b.start < a.start && a.start < b.end && b.end < a.end);
}
