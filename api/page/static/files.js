// A config.json that is chosen or dropped becomes a model of the workspace, so that its id fits
// into the address like any other. A manifest becomes the text of its field.
import { headers, showErrors } from "./answers.js";

const MOST_BYTES = 1_000_000;

export function connectFiles(form) {
  connectDrop(form, "[data-config]", takeConfig);
  connectDrop(form, "[data-manifest]", takeManifest);
  connectDrop(form, "[data-results]", takeResults);
}

function connectDrop(form, selector, take) {
  const input = form.querySelector(selector);
  if (!input) return;
  input.addEventListener("change", () => input.files[0] && take(form, input.files[0]));
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("dropping");
  });
  form.addEventListener("dragleave", () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    const file = event.dataTransfer.files[0];
    if (file) take(form, file);
  });
}

async function takeManifest(form, file) {
  if (file.size > MOST_BYTES) {
    showErrors(form, { file: "file: too large; accepted: 1 MB at most" });
    return;
  }
  form.elements.file.value = await file.text();
  form.elements.file.dispatchEvent(new Event("change", { bubbles: true }));
}

const KINDS = { csv: "text/csv", jsonl: "application/jsonl" };

// Runs of the reader's own: added to the workspace, whose calibration is refitted with them.
async function takeResults(form, file) {
  const said = [...form.querySelectorAll("[data-own]")].filter((input) => input.value.trim());
  const query = new URLSearchParams(said.map((input) => [input.dataset.own, input.value.trim()]));
  const kind = KINDS[file.name.split(".").pop()] ?? "application/json";
  showErrors(form, {});
  const response = await fetch(`/v1/measurements?${query}`, {
    method: "POST",
    headers: { "Content-Type": kind, ...headers() },
    body: await file.text(),
  });
  const result = await response.json();
  if (!response.ok) return showErrors(form, { results: result.detail });
  document.querySelector("[data-done]").textContent = `Added ${result.measurement.id}.`;
  return form.dispatchEvent(new Event("refresh"));
}

async function takeConfig(form, file) {
  try {
    if (file.size > MOST_BYTES) throw new Error("config: too large; accepted: 1 MB at most");
    const text = await file.text();
    const config = parse(text);
    const id = await identifier(config, text);
    const response = await fetch("/v1/models", {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers() },
      body: JSON.stringify({ id, config }),
    });
    if (!response.ok && response.status !== 409) throw new Error((await response.json()).detail);
    form.elements.model.value = `own/${id}`;
    form.elements.model.dispatchEvent(new Event("change", { bubbles: true }));
  } catch (error) {
    showErrors(form, { config: error.message });
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("config: not JSON; accepted: a model's config.json");
  }
}

// The same file has the same id, another one has another: an own model never changes.
async function identifier(config, text) {
  const bytes = new Uint8Array(await digest(text));
  const mark = [...bytes.slice(0, 4)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const name = String(config._name_or_path ?? config.model_type ?? "model");
  const plain = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  return `${plain.slice(0, 40) || "model"}-${mark}`;
}

async function digest(text) {
  const bytes = new TextEncoder().encode(text);
  if (globalThis.crypto?.subtle) return crypto.subtle.digest("SHA-256", bytes);
  let hash = 2166136261; // FNV-1a, where a page without TLS has no digests
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 16777619);
  return new Uint32Array([hash]).buffer;
}
