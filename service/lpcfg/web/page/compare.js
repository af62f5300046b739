/**
 * Compares trees of one sentence. Nodes are the same if they have the same label and span; of
 * several same ones in a chain, each counts.
 */

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

/** The nodes of one tree that another does not have. */
export function missingFrom(other, nodes) {
  return [...distinctive([nodes, other])[0]];
}

function countNodes(nodes) {
  const counts = new Map();
  for (const node of nodes) counts.set(keyOf(node), (counts.get(keyOf(node)) ?? 0) + 1);
  return counts;
}

function keyOf(node) {
  return `${node.start} ${node.end} ${node.word === null ? "" : "tag"} ${node.label}`;
}
