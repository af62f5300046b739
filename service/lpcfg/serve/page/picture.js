/**
 * A placed tree as a picture that needs nothing else: SVG text, or a PNG painted on a canvas.
 *
 * Pictures are for paper: dark on white in any theme.
 */

import { shapesOf } from "./shapes.js";
import { TYPE, fontFamily, fontOf } from "./type.js";

const INK = "#1c2330";
const GREY = "#5a6373";
const LINE = "#9aa3b2";
/** Fill and line of a box, by how sure the model is of it. */
const BOXES = {
  sure: ["#fff", LINE],
  likely: ["#fff", "#b98a1a"],
  unsure: ["#fdf1d2", "#a8750a"],
  doubtful: ["#fbe1da", "#b3341c"],
};
const FILLS = { label: INK, tag: INK, word: INK, "folded-words": GREY, number: GREY };
const PIXELS = 2;

/** The tree as an SVG document. */
export function svgPicture(drawing) {
  const picture = document.implementation.createDocument("http://www.w3.org/2000/svg", "svg");
  const root = picture.documentElement;
  set(root, {
    width: drawing.width,
    height: drawing.height,
    viewBox: `0 0 ${drawing.width} ${drawing.height}`,
    "font-family": fontFamily(),
  });
  const add = (name, attributes, text = "") => {
    const element = picture.createElementNS(root.namespaceURI, name);
    set(element, attributes);
    element.textContent = text;
    root.append(element);
  };
  add("rect", { width: "100%", height: "100%", fill: "#fff" });
  for (const shape of shapesOf(drawing)) addShape(shape, add);
  return new XMLSerializer().serializeToString(picture);
}

function addShape(shape, add) {
  if (shape.kind === "path") {
    add("path", { d: shape.path, fill: "none", stroke: LINE });
  } else if (shape.kind === "box") {
    const { x, y, width, height, radius } = shape;
    add("rect", { x, y, width, height, rx: radius, ...paint(shape) });
  } else {
    const { size, weight } = TYPE[shape.type];
    add("text", {
      x: shape.x,
      y: shape.y,
      "text-anchor": shape.anchor,
      "font-size": size,
      "font-weight": weight,
      fill: FILLS[shape.role],
    }, shape.text);
  }
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, typeof value === "number" ? Math.round(value * 100) / 100 : value);
  }
}

/** The tree as a PNG file. */
export async function pngPicture(drawing) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(drawing.width * PIXELS);
  canvas.height = Math.ceil(drawing.height * PIXELS);
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(PIXELS, PIXELS);
  for (const shape of shapesOf(drawing)) paintShape(shape, context);
  const file = await new Promise((resolve) => {
    canvas.toBlob(resolve, "image/png");
  });
  if (file === null) throw new Error("this browser cannot make a picture as large as this tree");
  return file;
}

function paintShape(shape, context) {
  if (shape.kind === "text") {
    context.font = fontOf(shape.type);
    context.textAlign = { start: "left", middle: "center", end: "right" }[shape.anchor];
    context.fillStyle = FILLS[shape.role];
    context.fillText(shape.text, shape.x, shape.y);
    return;
  }
  let outline = new Path2D(shape.path);
  let { fill, stroke } = { fill: "none", stroke: LINE };
  if (shape.kind === "box") {
    outline = new Path2D();
    outline.roundRect(shape.x, shape.y, shape.width, shape.height, shape.radius);
    ({ fill, stroke } = paint(shape));
  }
  if (fill !== "none") {
    context.fillStyle = fill;
    context.fill(outline);
  }
  if (stroke !== "none") {
    context.strokeStyle = stroke;
    context.stroke(outline);
  }
}

function paint({ role, level }) {
  const [fill, stroke] = BOXES[level];
  return role === "gauge" ? { fill: stroke, stroke: "none" } : { fill, stroke };
}
