/**
 * What this browser keeps for the reader, on this machine alone. A browser that keeps nothing does
 * no harm.
 */

/** What was kept under a name, or the fallback. */
export function kept(name, fallback) {
  try {
    return JSON.parse(localStorage.getItem(`lpcfg-${name}`)) ?? fallback;
  } catch {
    return fallback;
  }
}

/** Keep a value under a name. */
export function keep(name, value) {
  try {
    localStorage.setItem(`lpcfg-${name}`, JSON.stringify(value));
  } catch {
    // storage is full or not allowed: the page works without
  }
}
