/**
 * Writes numbers for people: the service's numbers, rounded.
 */

/** Write a probability as people say it: "32 %", "4.1 %", "over 99 %", "under 0.1 %". */
export function percent(probability) {
  if (probability === null || probability === undefined) return "unknown";
  if (probability >= 0.995) return probability === 1 ? "100 %" : "over 99 %";
  if (probability < 0.0005) return probability === 0 ? "0 %" : "under 0.1 %";
  return `${(100 * probability).toFixed(probability < 0.095 ? 1 : 0)} %`;
}

/** Write a natural logarithm: −64.58, or a dash if there is none. */
export function log(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2).replace("-", "−");
}

/** "1 word", "2 words". */
export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** Tokens [start, end) as people count them: "word 3", "words 3–5". */
export function wordRange(start, end) {
  return end - start === 1 ? `word ${end}` : `words ${start + 1}–${end}`;
}
