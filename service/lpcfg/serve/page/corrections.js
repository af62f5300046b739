/**
 * What the reader has corrected: for each sentence its steps, so that each can be undone.
 *
 * A step is { constraints, tags, sentence }: what is asked for, by span and by word, and the
 * service's answer to it. The first step of a sentence asks for nothing.
 */

import { cross } from "./analysis.js";

/** Sentences are told apart by their text, so that corrections survive changes elsewhere. */
export function correctionOf({ corrections, answer, sentence }) {
  return corrections.get(answer?.sentences[sentence]?.text) ?? null;
}

/** A sentence of the answer, as the reader corrected it. */
export function corrected({ corrections }, sentence) {
  const found = corrections.get(sentence.text);
  return found ? found.steps[found.at].sentence : sentence;
}

/** The sentence that is looked at, as the reader corrected it; null without any. */
export function sentenceShown(state) {
  const sentence = state.answer?.sentences[state.sentence];
  return sentence ? corrected(state, sentence) : null;
}

/** What is asked for now. */
export function askedOf(correction) {
  return correction ? correction.steps[correction.at] : { constraints: [], tags: {} };
}

/** Ask for a constituent, or forbid it. What contradicts it is not asked for any more. */
export function withConstraint({ constraints, tags }, wanted) {
  const others = constraints.filter((one) => !contradicts(one, wanted));
  return { constraints: [...others, wanted], tags };
}

/** Ask for the tag of a word. */
export function withTag({ constraints, tags }, place, tag) {
  return { constraints, tags: { ...tags, [place]: tag } };
}

/** Ask for one thing less. */
export function without({ constraints, tags }, one) {
  if (one.tag === undefined) return { constraints: constraints.filter((other) => other !== one), tags };
  return {
    constraints,
    tags: Object.fromEntries(Object.entries(tags).filter(([place]) => Number(place) !== one.start)),
  };
}

/** Everything that is asked for, as { start, end, label, forbid } or { start, end, tag }. */
export function listed({ constraints, tags }) {
  const words = Object.entries(tags).map(([place, tag]) => ({
    start: Number(place), end: Number(place) + 1, tag,
  }));
  return [...constraints, ...words];
}

function contradicts(one, wanted) {
  if (one.start === wanted.start && one.end === wanted.end) return true;
  return !one.forbid && !wanted.forbid && cross(one, wanted);
}

/** The sentence as the service takes it. */
export function requestOf(sentence, { constraints, tags }) {
  const words = sentence.tokens.map((token) => token.text);
  const known = Object.keys(tags).length > 0;
  return {
    tokens: words,
    ...(known && { tags: words.map((_, place) => tags[place] ?? null) }),
    ...(constraints.length > 0 && { constraints }),
  };
}

/** The answer to a corrected sentence, with the places that its words have in the text. */
export function inPlace(answer, { text, start, end, tokens }) {
  const placed = answer.tokens.map((token, number) => ({
    ...token, start: tokens[number].start, end: tokens[number].end,
  }));
  return { ...answer, text, start, end, tokens: placed };
}
