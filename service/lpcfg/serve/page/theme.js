/**
 * Light or dark: as the system has it, or as the reader chose.
 */

import { byId } from "./dom.js";
import { keep, kept } from "./kept.js";

const KEY = "theme";
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
  const chosen = kept(KEY, "auto");
  use(chosen in NEXT ? chosen : "auto");
  button.addEventListener("click", () => {
    const theme = NEXT[button.dataset.theme];
    keep(KEY, theme);
    use(theme);
  });
}
