/**
 * The description of the HTTP API: each endpoint can be tried, and copied as a command.
 */

import { byId } from "./dom.js";
import { copy } from "./files.js";
import { followTheme } from "./theme.js";

/** Answers longer than this are cut on the screen. */
const SHOWN = 20_000;

followTheme();
byId("theme").hidden = false;
byId("key").closest("label").hidden = false;
for (const form of document.querySelectorAll(".try")) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form);
  });
  form.querySelector(".curl").addEventListener("click", () => command(form));
}
const wide = matchMedia("(min-width: 64rem)");
const unfold = () => {
  document.querySelector(".contents details").open = wide.matches;
};
wide.addEventListener("change", unfold);
unfold();
nameModels();

/** Send the request and show what comes. */
async function attempt(form) {
  const { address, request } = requestOf(form);
  const began = performance.now();
  tell(form, "Asking …");
  try {
    const response = await fetch(address, request);
    const text = await response.text();
    const took = Math.round(performance.now() - began);
    const retry = response.headers.get("Retry-After");
    const told = `${response.status} ${response.statusText} · ${took} ms${retry ? ` · again after ${retry} s` : ""}`;
    tell(form, told, !response.ok);
    show(form, readable(text, response.headers.get("Content-Type") ?? ""));
    if (response.status === 202) nameJob(JSON.parse(text));
  } catch {
    tell(form, "The service does not answer.", true);
  }
}

function requestOf(form) {
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const input of form.querySelectorAll("[data-in]")) {
    const value = input.value.trim();
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(value));
    else if (value !== "") query.set(input.name, value);
  }
  const headers = {};
  const accept = form.elements.accept;
  if (accept) headers.Accept = accept.value;
  if (byId("key").value) headers.Authorization = `Bearer ${byId("key").value}`;
  const request = { method: form.dataset.method, headers };
  const body = form.elements.body;
  if (body) {
    headers["Content-Type"] = body.dataset.type;
    request.body = body.value;
  }
  const suffix = query.size > 0 ? `?${query}` : "";
  return { address: path + suffix, request };
}

function tell(form, words, failed = false) {
  const told = form.querySelector(".told");
  told.textContent = words;
  told.classList.toggle("failed", failed);
}

function show(form, text) {
  const box = form.querySelector(".answer");
  box.hidden = false;
  box.textContent = text.length > SHOWN ? `${text.slice(0, SHOWN)}\n… and ${text.length - SHOWN} characters more` : text;
}

function readable(text, type) {
  if (!/json$|json;/.test(type) || type.includes("ndjson")) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Copy the request as a command for a POSIX shell. */
async function command(form) {
  const { address, request } = requestOf(form);
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl", "-X", request.method, quoted(new URL(address, location.href).href)];
  for (const [name, value] of Object.entries(request.headers)) {
    parts.push("-H", quoted(`${name}: ${name === "Authorization" ? "Bearer KEY" : value}`));
  }
  if (request.body !== undefined) parts.push("--data-binary", quoted(request.body));
  try {
    await copy(parts.join(" "));
    tell(form, "Copied.");
  } catch (error) {
    tell(form, error.message, true);
  }
}

/** Fill in the id of a job that was begun, where a path needs it. */
function nameJob({ id }) {
  for (const input of document.querySelectorAll("[data-in='path'][name='id']")) input.value = id;
}

/** Fill in the name and the version of a model that is served, where a path needs them. */
async function nameModels() {
  try {
    const { models } = await (await fetch("/v1/models")).json();
    for (const member of ["name", "version"]) {
      const inputs = document.querySelectorAll(`[data-in='path'][name='${member}']`);
      for (const input of inputs) input.value ||= models[0][member];
    }
  } catch {
    // a service that wants a key, or that starts: the reader can write the name
  }
}
