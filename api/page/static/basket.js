// Scenarios kept for comparison in this browser tab, saved in the workspace, or shared by address.
import { headers, query } from "./answers.js";

const KEPT = "scenarios";

const kept = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");

function say(text) {
  const place = document.querySelector("[data-done]");
  if (place) place.textContent = text;
}

export function connectBasket(form) {
  document.querySelector("[data-keep]")?.addEventListener("click", () => {
    const all = [...new Set([...kept(), query(form)])];
    sessionStorage.setItem(KEPT, JSON.stringify(all));
    const link = document.createElement("a");
    link.href = `/compare?${new URLSearchParams(all.map((text) => ["s", text]))}`;
    link.textContent = `compare ${all.length} kept`;
    document.querySelector("[data-done]").replaceChildren(link);
  });
  document.querySelector("[data-save]")?.addEventListener("click", () => save(form));
  document.querySelector("[data-share]")?.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("Link copied.");
    } catch {
      say(location.href);
    }
  });
  document.querySelector("[data-forget]")?.addEventListener("click", () => {
    sessionStorage.removeItem(KEPT);
    location.href = "/compare";
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]"); // also those of a later answer
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    say("Copied.");
  });
}

async function save(form) {
  const asked = await fetch(`/page/scenario?${query(form)}`, { headers: headers() });
  const scenario = await asked.json();
  if (scenario.errors) return say(Object.values(scenario.errors).join("; "));
  const response = await fetch("/v1/scenarios", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers() },
    body: JSON.stringify(scenario),
  });
  const stored = await response.json();
  return say(response.ok ? `Saved as ${stored.id}.` : stored.detail);
}
