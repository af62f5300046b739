/**
 * Steps from node to node of a tree. Null or undefined where there is none.
 */

export function parent(node) {
  return node.parent;
}

export function child(node) {
  return node.children[0];
}

export function before(node) {
  return beside(node, -1);
}

export function after(node) {
  return beside(node, 1);
}

/** The next child of the parent; at the last one, of the parent's parent, and so on. */
function beside(node, step) {
  for (let at = node; at.parent !== null; at = at.parent) {
    const found = at.parent.children[at.place + step];
    if (found) return found;
  }
  return null;
}
