/**
 * Making elements. Text always becomes text nodes, never markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes, listeners (`on`) and children. */
export function html(name, attributes = {}, ...children) {
  return dress(document.createElement(name), attributes, children);
}

/** An SVG element with attributes, listeners (`on`) and children. */
export function svg(name, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, name), attributes, children);
}

/** Give an element attributes, listeners (`on`) and children. */
export function dress(element, { on = {}, ...attributes }, children = []) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}
