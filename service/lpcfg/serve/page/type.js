/**
 * The sizes of letters in drawings, and how wide text is in them.
 */

/** Kinds of text: size in pixels and weight. */
export const TYPE = {
  label: { size: 13, weight: 600 },
  tag: { size: 11, weight: 500 },
  number: { size: 10.5, weight: 400 },
  word: { size: 15, weight: 400 },
};

const widths = new Map();
let context = null;
/** The kind whose font the context has. */
let measured = null;
let family = null;

/** The fonts that the page is set in. */
export function fontFamily() {
  family ??= getComputedStyle(document.documentElement).fontFamily;
  return family;
}

/** The CSS shorthand of a kind of text. */
export function fontOf(kind) {
  const { size, weight } = TYPE[kind];
  return `${weight} ${size}px ${fontFamily()}`;
}

/** A style sheet for elements with classes of kinds: type-word has the letters of a word. */
export function typeSheet() {
  const rules = Object.entries(TYPE).map(([kind, { size, weight }]) =>
    `.type-${kind} { font-size: ${size}px; font-weight: ${weight}; }`);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules.join("\n"));
  return sheet;
}

/** How many pixels wide the text is. */
export function widthOf(text, kind) {
  const key = `${kind} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    context ??= document.createElement("canvas").getContext("2d");
    if (kind !== measured) context.font = fontOf(kind);
    measured = kind;
    width = context.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/** The text, its end replaced by an ellipsis where it is wider than this many pixels. */
export function fitted(text, kind, most) {
  if (widthOf(text, kind) <= most) return text;
  const characters = Array.from(text);
  let low = 0;
  let high = characters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const shorter = `${characters.slice(0, middle).join("").trimEnd()}…`;
    if (widthOf(shorter, kind) <= most) low = middle;
    else high = middle - 1;
  }
  return `${characters.slice(0, low).join("").trimEnd()}…`;
}
