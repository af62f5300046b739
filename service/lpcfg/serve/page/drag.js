/**
 * Dragging with the mouse in a box that scrolls. Fingers scroll it anyway.
 */

const DRAGGED = 4;

/**
 * Let the mouse drag what is in a box.
 *
 * @param take  called where a drag begins: { move, end } takes the drag over, null lets it scroll
 */
export function dragToScroll(box, take = () => null) {
  let from = null;
  let moved = false;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    from = {
      x: event.clientX,
      y: event.clientY,
      left: box.scrollLeft,
      top: box.scrollTop,
      taken: take(event),
    };
    moved = false;
  });
  box.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!moved && Math.hypot(dx, dy) < DRAGGED) return;
    if (!moved) box.setPointerCapture(event.pointerId);
    moved = true;
    if (from.taken) {
      from.taken.move(event);
      return;
    }
    box.scrollLeft = from.left - dx;
    box.scrollTop = from.top - dy;
  });
  const end = () => {
    if (moved) from?.taken?.end();
    from = null;
  };
  box.addEventListener("pointerup", end);
  box.addEventListener("pointercancel", end);
  box.addEventListener("click", (event) => {
    if (moved) event.stopPropagation();
    moved = false;
  }, { capture: true });
}
