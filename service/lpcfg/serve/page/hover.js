/**
 * The words that are highlighted now, shared by text, trees and chart.
 *
 * A spot is { start, end, part } over words: the words of a node or cell (`part` is "span"), or one
 * word with all that holds it ("word").
 */

export class Hover {
  #spot = null;
  #listeners = [];

  /** Look at this spot, or at nothing (null). */
  turn(spot) {
    if (same(this.#spot, spot)) return;
    this.#spot = spot;
    for (const listener of this.#listeners) listener(spot);
  }

  /** Call the listener with every new spot. */
  on(listener) {
    this.#listeners.push(listener);
  }
}

/** Return true if this word is highlighted. */
export function isLitWord(spot, number) {
  return spot !== null && spot.start <= number && number < spot.end;
}

/** Return true if a span is highlighted: inside a spot's span, or around its word. */
export function isLitSpan(spot, { start, end }) {
  if (spot === null) return false;
  if (spot.part === "word") return start <= spot.start && spot.end <= end;
  return spot.start <= start && end <= spot.end;
}

function same(a, b) {
  if (a === null || b === null) return a === b;
  return a.start === b.start && a.end === b.end && a.part === b.part;
}
