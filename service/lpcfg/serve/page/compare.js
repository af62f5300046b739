/**
 * Compares trees of one sentence. Nodes are the same if they have the same label and span; of
 * several same ones in a chain, each counts.
 */

import { cross } from "./analysis.js";

/** For each tree, the nodes that some other of the trees does not have. */
export function distinctive(trees) {
  const counts = trees.map(countNodes);
  return trees.map((nodes) => {
    const seen = new Map();
    return new Set(
      nodes.filter((node) => {
        const key = keyOf(node);
        const number = (seen.get(key) ?? 0) + 1;
        seen.set(key, number);
        return counts.some((others) => (others.get(key) ?? 0) < number);
      }),
    );
  });
}

/** The number of the likeliest other reading; undefined where there is none. */
export function rivalOf(parses, tree) {
  const others = [...parses.keys()].filter((number) => number !== tree);
  return others.sort((a, b) => (parses[b].probability ?? 0) - (parses[a].probability ?? 0))[0];
}

/** The nodes of one tree that another does not have. */
export function missingFrom(other, nodes) {
  return [...distinctive([nodes, other])[0]];
}

/**
 * For each of two trees, the ids of the nodes to fold, so that only what differs stays open: those
 * that hold no difference of either tree and cross none.
 */
export function foldedAround(nodes, others) {
  const differing = distinctive([nodes, others]).flatMap((some) => [...some]);
  if (differing.length === 0) return [new Set(), new Set()];
  const touches = (node) => differing.some((one) => cross(one, node)
    || (node.start <= one.start && one.end <= node.end));
  return [nodes, others].map((tree) => new Set(
    tree.filter((node) => node.children.length > 0 && !touches(node)).map((node) => node.id),
  ));
}

function countNodes(nodes) {
  const counts = new Map();
  for (const node of nodes) counts.set(keyOf(node), (counts.get(keyOf(node)) ?? 0) + 1);
  return counts;
}

function keyOf(node) {
  return `${node.start} ${node.end} ${node.word === null ? "" : "tag"} ${node.label}`;
}
