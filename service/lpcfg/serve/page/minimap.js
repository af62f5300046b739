/**
 * A small picture of a whole drawing, with a frame around the part that its box shows.
 *
 * It is for the eye and the mouse; keys walk through the drawing itself.
 */

import { dress, html, svg } from "./dom.js";

/** The greatest height of the map, which stands below its box. */
const THICK = 72;

export class Minimap {
  #box;
  #lines = svg("path", { class: "lines" });
  #frame = svg("rect", { class: "frame" });
  #picture = svg("svg", {}, this.#lines, this.#frame);
  #drawing = null;

  /** @param box  the element that scrolls */
  constructor(box) {
    this.#box = box;
    this.element = html("div", { class: "minimap", "aria-hidden": "true", hidden: true }, this.#picture);
    box.addEventListener("scroll", () => this.follow(), { passive: true });
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      this.#go(event);
    });
    this.element.addEventListener("pointermove", (event) => {
      if (event.buttons > 0) this.#go(event);
    });
  }

  /** Take over a new drawing and its lines, a path in SVG's notation. */
  show(drawing, lines) {
    this.#drawing = drawing;
    const { width, height } = drawing;
    this.#picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#lines.setAttribute("d", lines);
  }

  /** Move the frame to what is visible; show the map only where that is not everything. */
  follow() {
    const box = this.#box;
    const isWhole = box.scrollWidth <= box.clientWidth + 1 && box.scrollHeight <= box.clientHeight + 1;
    this.element.hidden = isWhole;
    if (isWhole) return;
    const { width, height } = this.#drawing;
    const scale = Math.min(box.clientWidth / width, THICK / height);
    const [across, down] = [width / box.scrollWidth, height / box.scrollHeight];
    const place = {
      x: box.scrollLeft * across,
      y: box.scrollTop * down,
      width: box.clientWidth * across,
      height: box.clientHeight * down,
    };
    // only now, as a change between two readings would make the browser lay out everything again
    dress(this.#picture, { width: width * scale, height: height * scale });
    dress(this.#frame, place);
  }

  #go(event) {
    const place = this.#picture.getBoundingClientRect();
    const box = this.#box;
    const part = (at, start, size) => (at - start) / size;
    box.scrollLeft = part(event.clientX, place.left, place.width) * box.scrollWidth - box.clientWidth / 2;
    box.scrollTop = part(event.clientY, place.top, place.height) * box.scrollHeight - box.clientHeight / 2;
  }
}
