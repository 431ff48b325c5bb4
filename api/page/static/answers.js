// Sends the form whenever it changes and shows what comes back; the address holds the form's state.
import { draw, onPointed, pick } from "./charts.js";

const PAUSE_MS = 80; // a reader who types on is not interrupted

/** The filled fields of a form; without those that are too long for an address, on request. */
export function query(form, shared = false) {
  const fields = [...new FormData(form)].filter(
    ([name, value]) =>
      typeof value === "string" &&
      value.trim() &&
      !(shared && form.querySelector(`[name="${name}"][data-unshared]`)),
  );
  return new URLSearchParams(fields).toString();
}

function ask(form, text, signal) {
  const options = { signal, headers: headers() };
  return form.method === "post"
    ? fetch(form.dataset.answers, { ...options, method: "POST", body: new URLSearchParams(text) })
    : fetch(`${form.dataset.answers}?${text}`, options);
}

export function headers() {
  const key = sessionStorage.getItem("key");
  return key ? { Authorization: `Bearer ${key}` } : {};
}

export function connect(form) {
  let timer, running, last;

  async function answer(again = false) {
    const text = query(form);
    if (text === last && !again) return; // leaving a field says again what typing said
    last = text;
    running?.abort();
    const mine = (running = new AbortController());
    const region = document.querySelector("#answer");
    region?.setAttribute("aria-busy", "true");
    performance.mark("asked");
    try {
      const response = await ask(form, text, mine.signal);
      const result = await response.json();
      history.replaceState(null, "", `${location.pathname}?${query(form, true)}`);
      await show(form, result, text);
    } catch (error) {
      if (error.name !== "AbortError") {
        showErrors(form, { "": "The service does not answer; try again." });
      }
    } finally {
      if (running === mine) region?.setAttribute("aria-busy", "false");
    }
  }

  form.addEventListener("input", (event) => {
    if (event.target.type === "file" || !event.target.name) return;
    clearTimeout(timer);
    timer = setTimeout(() => answer(), PAUSE_MS);
  });
  form.addEventListener("change", (event) => {
    if (event.target.type === "file" || !event.target.name) return;
    clearTimeout(timer);
    answer();
  });
  form.addEventListener("refresh", () => answer(true)); // the store changed, not the form
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    answer();
  });
  form.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 2, ArrowDown: 0.5 }[event.key];
    if (!step || !("steps" in event.target.dataset)) return;
    const value = Number(event.target.value || 1);
    if (!Number.isInteger(value)) return;
    event.preventDefault();
    event.target.value = String(Math.max(1, Math.floor(value * step)));
    event.target.dispatchEvent(new Event("input", { bubbles: true }));
  });
  connectPick();
  // What the page came with is up to date: only its charts are still to be drawn.
  const charts = JSON.parse(document.querySelector("#charts").content.textContent);
  last = query(form);
  show(form, { charts }, query(form, true), false);
}

let shown; // the answer that is on the page, or being drawn
const sources = new WeakMap(); // element → the text it was filled with

async function show(form, result, text, asked = true) {
  shown = result;
  if (asked) showErrors(form, result.errors ?? {});
  if (result.title) document.title = result.title;
  for (const [id, html] of Object.entries(result.html ?? {})) {
    replace(document.getElementById(id), html);
  }
  for (const link of document.querySelectorAll("[data-query-link]")) {
    link.href = `${link.getAttribute("href").split("?")[0]}?${text}`;
  }
  if (!Object.keys(result.errors ?? {}).length) {
    for (const figure of document.querySelectorAll("[data-picture]")) {
      figure.hidden = !(figure.dataset.picture in result.charts);
    }
  }
  if (result.charts?.throughput) curve = result.charts.throughput.datasets.curve;
  readPick(); // noted first, so that each chart is run once
  const places = Object.entries(result.charts ?? {})
    .map(([name, spec]) => [document.querySelector(`[data-chart="${name}"]`), spec])
    .filter(([element]) => element);
  const [seen, rest] = [places.filter(inView), places.filter((place) => !inView(place))];
  for (const [element, spec] of seen) await draw(element, spec);
  if (asked) performance.measure("answered", "asked"); // what a reader sees is up to date
  for (const [element, spec] of rest) {
    await new Promise((turn) => setTimeout(turn)); // events of the reader come first
    if (shown !== result) return; // a later answer draws it
    await draw(element, spec);
  }
}

// What a reader opened stays open.
function replace(place, html) {
  if (sources.get(place) !== html) {
    const open = [...place.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
    place.innerHTML = html; // made and escaped by this service's templates
    sources.set(place, html);
    for (const summary of place.querySelectorAll("details > summary")) {
      if (open.includes(summary.textContent)) summary.parentElement.open = true;
    }
  }
}

function inView([element]) {
  const box = element.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}

export function showErrors(form, errors) {
  for (const place of document.querySelectorAll("[data-error]")) {
    place.textContent = errors[place.dataset.error] ?? "";
    const field = form.elements.namedItem(place.dataset.error);
    if (field instanceof Element) {
      if (place.textContent) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
  }
  const known = new Set([...document.querySelectorAll("[data-error]")].map((p) => p.dataset.error));
  const rest = Object.entries(errors).filter(([name]) => !known.has(name));
  if (rest.length) {
    const place = document.querySelector('[data-error=""]');
    if (place) place.textContent = rest.map(([, message]) => message).join("; ");
  }
}

// One batch, marked in all charts: by the slider or by pointing at a chart.
let curve = [];

function connectPick() {
  const slider = document.querySelector("[data-pick]");
  if (!slider) return;
  slider.addEventListener("input", readPick);
  onPointed((batch) => {
    const index = curve.findIndex((row) => row.batch === batch);
    if (index >= 0 && String(index) !== slider.value) {
      slider.value = String(index);
      readPick();
    }
  });
}

function readPick() {
  const slider = document.querySelector("[data-pick]");
  if (!slider || !curve.length) return;
  slider.max = String(curve.length - 1);
  const row = curve[Math.min(Number(slider.value), curve.length - 1)];
  const shown = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const text =
    row.fits === "yes"
      ? `batch ${row.batch}: TPOT ${shown(row.tpot_ms)} ms (${shown(row.tpot_p10_ms)} – ` +
        `${shown(row.tpot_p90_ms)}), ${shown(row.tokens_per_s_per_gpu)} tokens/s per GPU`
      : `batch ${row.batch}: does not fit`;
  slider.setAttribute("aria-valuetext", text);
  document.querySelector("[data-picked]").textContent = text;
  pick(row.batch);
}
