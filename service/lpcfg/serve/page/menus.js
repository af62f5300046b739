/**
 * Menus: closed by Escape, by a click elsewhere, and when the focus leaves them.
 */

/** Let all menus of the page close as readers expect. */
export function tendMenus() {
  for (const menu of document.querySelectorAll("details.menu")) {
    menu.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget !== null && !menu.contains(relatedTarget)) menu.open = false;
    });
    menu.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
  document.addEventListener("pointerdown", ({ target }) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(target)) menu.open = false;
    }
  });
}
