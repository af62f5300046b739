"""The page's style: light or dark, following the reader's system."""

CSS = """
:root {
  color-scheme: light dark;
  --paper: light-dark(#faf9f6, #14171c);
  --surface: light-dark(#ffffff, #1b1f26);
  --ink: light-dark(#1c2330, #e7e9ee);
  --muted: light-dark(#566070, #a6afbd);
  --line: light-dark(#dedbd3, #333a45);
  --accent: light-dark(#1c5f78, #7cc0d8);
  --soft: light-dark(#a9cbd8, #2f5f70);
  --warm: light-dark(#97390a, #f0a678);
  font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
*, *::before, *::after { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 3vw, 2.5rem) 3rem; max-width: 80rem;
  background: var(--paper); color: var(--ink); }
h1 { margin: 0; font-size: 1.75rem; letter-spacing: -.015em; }
h2 { margin: 0 0 .25rem; font-size: 1.15rem; letter-spacing: -.01em; }
h3 { margin: 1rem 0 .5rem; font-size: .95rem; }
p { margin: 0 0 .75rem; max-width: 65ch; }
.muted { color: var(--muted); }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .85em;
  overflow-wrap: anywhere; }
header p { margin: .25rem 0 1.25rem; max-width: none; }
section { margin-top: 1.25rem; padding: 1.25rem 1.5rem; background: var(--surface);
  border: 1px solid var(--line); border-radius: 10px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.75rem, 1fr)); gap: .75rem;
  margin: 0; }
.tiles div { padding: .75rem 1rem; background: var(--surface); border: 1px solid var(--line);
  border-radius: 10px; }
.tiles dt { font-size: .8rem; color: var(--muted); }
.tiles dd { margin: 0; font-size: 1.5rem; font-weight: 600; line-height: 1.3;
  font-variant-numeric: tabular-nums; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: .5rem 2.5rem; align-items: start; }
figure { margin: 0; min-width: 0; overflow-x: auto; }
figcaption { font-size: .85rem; color: var(--muted); }
figcaption strong { color: var(--ink); }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem 1rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; color: var(--muted); }
th:first-child, td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
details { margin-top: .75rem; }
summary { cursor: pointer; color: var(--accent); font-size: .875rem; }
pre { margin: .5rem 0 0; white-space: pre-wrap; font-size: .8rem; }
svg { display: block; max-width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--ink); dominant-baseline: central;
  font-variant-numeric: tabular-nums; }
svg .note, svg .axis { fill: var(--muted); }
svg .axis { font-size: 11px; }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
svg .turned { transform: rotate(-90deg); transform-box: fill-box; transform-origin: center; }
svg .bar { fill: var(--soft); }
svg g:hover > .bar, svg g:hover > .dot { fill: var(--warm); }
svg .tick { stroke: var(--accent); stroke-width: 1.5; }
svg .frame { fill: none; stroke: var(--line); }
svg .grid { stroke: var(--line); stroke-width: .75; }
svg .diagonal { stroke: var(--muted); stroke-dasharray: 4 4; }
svg .curve { fill: none; stroke: var(--warm); stroke-width: 1.5; }
svg .dot { fill: var(--accent); fill-opacity: .85; }
svg .heat { fill: var(--accent); }
svg .kept { fill: none; stroke: var(--warm); stroke-width: 1; }
"""
