/**
 * Cuts a long text into pieces that the service takes one by one, at ends of paragraphs or
 * sentences. A text of fewer sentences stays whole, so that the service alone finds its sentences.
 */

/** About this many sentences go into a piece: the service takes 256 by default. */
const SENTENCES = 64;
const LONGEST = 30_000;
/** A stop after a word in lower case, not after `Dr.` or `e.g.`; or the end of a line. */
const END = /(?<=[\p{Ll}\p{Nd}\p{Pe}\p{Pf}"']{3}[.!?]["'”’)]*)\s+(?=["'“‘(]?\p{Lu})|\n+/gu;

/** The pieces of a text: { text, start }, `start` in code points. */
export function textPieces(text) {
  const pieces = [];
  let begin = 0;
  let ends = 0;
  let last = 0;
  const cut = (end) => {
    pieces.push(text.slice(begin, end));
    begin = end;
    ends = 0;
  };
  for (const found of text.matchAll(END)) {
    const end = found.index + found[0].length;
    if (end - begin > LONGEST && last > begin) cut(last);
    ends += 1;
    last = end;
    if (ends === SENTENCES) cut(end);
  }
  if (begin < text.length) pieces.push(text.slice(begin));
  let start = 0;
  return pieces.map((piece) => {
    const placed = { text: piece, start };
    start += Array.from(piece).length;
    return placed;
  }).filter((piece) => piece.text.trim() !== "");
}

/** Move the places in an answer to a piece to those in the whole text. */
export function movedBy(sentences, start) {
  if (start === 0) return sentences;
  return sentences.map((sentence) => ({
    ...sentence,
    start: sentence.start + start,
    end: sentence.end + start,
    tokens: sentence.tokens.map((token) => ({
      ...token, start: token.start + start, end: token.end + start,
    })),
    parses: sentence.parses.map((parse) => ({
      ...parse,
      constituents: parse.constituents.map((one) => ({
        ...one, start_char: one.start_char + start, end_char: one.end_char + start,
      })),
    })),
  }));
}
