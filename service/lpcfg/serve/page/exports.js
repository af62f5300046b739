/**
 * Answers as files: JSON lines, brackets, and LaTeX for the package forest.
 */

import { readTree } from "./brackets.js";

/** One line of JSON for each sentence, with the model that answered. */
export function jsonLines({ model }, sentences) {
  return sentences.map((sentence) => `${JSON.stringify({ model, ...sentence })}\n`).join("");
}

/** One tree a line; sentences without one are left out. */
export function bracketLines(sentences) {
  return sentences.flatMap(({ parses }) => parses.slice(0, 1).map(({ tree }) => `${tree}\n`)).join("");
}

/** A LaTeX document that draws the trees with the package forest. */
export function forest(trees) {
  const drawn = trees.map((tree) => `\\begin{forest}\n  where n children=0{tier=word}{}\n${forestNode(
    readTree(tree)[0], "  ",
  )}\n\\end{forest}\n`);
  return `\\documentclass{article}\n\\usepackage[landscape,margin=1cm]{geometry}\n\\usepackage{forest}\n`
    + `\\begin{document}\n${drawn.join("\\bigskip\n\n")}\\end{document}\n`;
}

function forestNode(node, indent) {
  if (node.word !== null) return `${indent}[${escaped(node.label)} [${escaped(node.word)}]]`;
  const children = node.children.map((child) => forestNode(child, `${indent}  `));
  return `${indent}[${escaped(node.label)}\n${children.join("\n")}\n${indent}]`;
}

const NAMES = {
  "\\": "\\textbackslash ", "^": "\\textasciicircum ", "~": "\\textasciitilde ",
  "[": "\\lbrack ", "]": "\\rbrack ",
};

/** Text in braces, so that commas, brackets and equal signs mean nothing to forest. */
function escaped(text) {
  const safe = text.replace(/[\\^~[\]]|[#$%&_{}]/g, (one) => NAMES[one] ?? `\\${one}`);
  return `{${safe}}`;
}
