/**
 * Reads Penn brackets, as the service writes them, into nodes; separates several trees in a text.
 *
 * A node has a label and either children or a word, its span [start, end) in words, its parent, its
 * depth, its place among the children of its parent and its number in pre-order.
 */

const TOKEN = /[()]|[^ \t\n\r\f\v()]+/g;

/** The nodes of one well-formed tree in pre-order; the first is the root. */
export function readTree(brackets) {
  const nodes = [];
  const open = [];
  let words = 0;
  let expectsLabel = false;
  for (const [token] of brackets.matchAll(TOKEN)) {
    if (token === "(") {
      const parent = open.at(-1) ?? null;
      const node = {
        id: nodes.length,
        label: "",
        word: null,
        children: [],
        parent,
        depth: open.length,
        place: parent?.children.length ?? 0,
        start: words,
      };
      parent?.children.push(node);
      nodes.push(node);
      open.push(node);
    } else if (token === ")") {
      open.pop().end = words;
    } else if (expectsLabel) {
      open.at(-1).label = token;
    } else {
      open.at(-1).word = token;
      words += 1;
    }
    expectsLabel = token === "(";
  }
  return nodes;
}

/** Split a text into pieces of one tree each. An unfinished tree is a piece too. */
export function splitTrees(text) {
  const pieces = [];
  let depth = 0;
  let start = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match[0] === "(") depth += 1;
    if (match[0] === ")") depth = Math.max(0, depth - 1);
    if (depth === 0 && match[0] !== "(") {
      const end = match.index + match[0].length;
      pieces.push({ start, text: text.slice(start, end) });
      start = end;
    }
  }
  pieces.push({ start, text: text.slice(start) });
  return pieces.map(trimmed).filter((piece) => piece.text !== "");
}

function trimmed({ start, text }) {
  const left = text.trimStart();
  return { start: start + text.length - left.length, text: left.trimEnd() };
}
