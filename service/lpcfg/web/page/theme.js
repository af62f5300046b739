/**
 * Light or dark: as the system has it, or as the reader chose.
 */

import { byId } from "./dom.js";

const KEY = "lpcfg-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const WORDS = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

/** Follow the reader's choice and keep it. */
export function followTheme() {
  const button = byId("theme");
  const use = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.dataset.theme = theme;
    button.setAttribute("aria-label", WORDS[theme]);
    button.title = WORDS[theme];
  };
  const kept = localStorage.getItem(KEY);
  use(kept in NEXT ? kept : "auto");
  button.addEventListener("click", () => {
    const theme = NEXT[button.dataset.theme];
    localStorage.setItem(KEY, theme);
    use(theme);
  });
}
