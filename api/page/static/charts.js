// Draws specifications the server made, keeps them in step with each other and with the theme.
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map(); // element → {shape, view, spec}
let listeners = [];
let picked = 0; // the batch marked in all charts
let library, themes;

function load() {
  library ??= import("/page/charts.js");
  themes ??= fetch("/page/themes.json").then((response) => response.json());
  return Promise.all([library, themes]);
}

/** Draw a specification in an element; where only its rows changed, only they are replaced. */
export async function draw(element, spec) {
  let loaded;
  try {
    loaded = await load();
  } catch {
    element.textContent = "Charts need the extra `page` of the service; the tables have all figures.";
    return;
  }
  const [{ vegaEmbed }, configs] = loaded;
  const { datasets, description, ...shape } = spec;
  const config = configs[dark.matches ? "dark" : "light"];
  const key = JSON.stringify([shape, dark.matches]);
  const before = drawn.get(element);
  if (before?.shape === key) {
    before.spec = spec;
    if (await replaceRows(before.view, datasets, description)) return;
  }
  before?.view.finalize();
  const result = await vegaEmbed(element, spec, {
    ast: true, // expressions are interpreted: the page allows no evaluation of text
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    defaultStyle: false,
    config,
    tooltip: { disableDefaultStyle: true },
    hover: false,
  });
  drawn.set(element, { shape: key, view: result.view, spec });
  if (mark(result.view)) await result.view.runAsync();
  followPointer(element, result.view);
}

// One run of the view for all that changed: its rows, its description and the batch marked.
async function replaceRows(view, datasets, description) {
  try {
    for (const [name, rows] of Object.entries(datasets)) view.data(name, rows);
    if (description) view.description(description);
    mark(view);
    await view.runAsync();
    return true;
  } catch {
    return false; // the library named the rows otherwise: draw anew
  }
}

/** Note the batch to mark; true where a view does not mark it yet. */
function mark(view) {
  try {
    if (view.signal("picked") === picked) return false;
    view.signal("picked", picked);
    return true;
  } catch {
    return false; // this chart has no batch to mark
  }
}

function followPointer(element, view) {
  try {
    view.addSignalListener("near_tuple", (_name, tuple) => {
      if (tuple?.values?.length) listeners.forEach((listener) => listener(tuple.values[0]));
    });
  } catch {
    // this chart has no batch to point at
  }
}

export function onPointed(listener) {
  listeners.push(listener);
}

/** Mark a batch in every chart that has one; those still to be drawn take it then. */
export function pick(batch) {
  picked = batch;
  for (const { view } of drawn.values()) if (mark(view)) view.runAsync();
}

dark.addEventListener("change", () => {
  for (const [element, { spec }] of [...drawn]) draw(element, spec);
});

let width = innerWidth;
addEventListener("resize", () => {
  if (width === innerWidth) return;
  width = innerWidth;
  for (const { view } of drawn.values()) view.resize().runAsync();
});
