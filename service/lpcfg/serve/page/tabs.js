/**
 * Tabs as ARIA describes them: arrows go from one to the next.
 */

import { byId } from "./dom.js";

const VIEWS = ["tree", "chart", "score"];

/** Show one view at a time, as the store says. */
export function showTabs(store) {
  const tabs = VIEWS.map((view) => byId(`tab-${view}`));
  tabs.forEach((tab, number) => {
    tab.addEventListener("click", () => store.set({ view: VIEWS[number] }));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = (number + step + VIEWS.length) % VIEWS.length;
      store.set({ view: VIEWS[next] });
      tabs[next].focus();
    });
  });
  store.on(["view"], ({ view }) => {
    VIEWS.forEach((name, number) => {
      const isChosen = name === view;
      tabs[number].setAttribute("aria-selected", String(isChosen));
      tabs[number].tabIndex = isChosen ? 0 : -1;
      byId(`panel-${name}`).hidden = !isChosen;
    });
    byId("readout-row").hidden = view === "score";
  });
}
