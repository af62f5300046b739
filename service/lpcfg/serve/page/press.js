/**
 * A click counts only where the pointer is released over what it was pressed on. What moves the page
 * waits for the release.
 */

/** A longer press is a drag, or its release went to a menu of the browser's own. */
const LONGEST = 1000;

let end = Promise.resolve();

/** Watch the pointer. */
export function followPresses() {
  document.addEventListener("pointerdown", () => {
    end = new Promise((resolve) => {
      const release = () => setTimeout(resolve); // after the click, which comes last
      for (const kind of ["pointerup", "pointercancel"]) {
        document.addEventListener(kind, release, { capture: true, once: true });
      }
      setTimeout(resolve, LONGEST);
    });
  }, { capture: true });
}

/** Wait until the pointer is not pressed. */
export function released() {
  return end;
}
