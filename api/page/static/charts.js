// Draws specifications the server made, keeps them in step with each other and with the theme.
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map(); // element → {shape, view, spec}
let listeners = [];
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
  const { datasets, ...shape } = spec;
  const config = configs[dark.matches ? "dark" : "light"];
  const key = JSON.stringify([shape, dark.matches]);
  const before = drawn.get(element);
  if (before?.shape === key) {
    before.spec = spec;
    if (await replaceRows(before.view, datasets)) return;
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
  followPointer(element, result.view);
}

async function replaceRows(view, datasets) {
  try {
    for (const [name, rows] of Object.entries(datasets)) view.data(name, rows);
    await view.runAsync();
    return true;
  } catch {
    return false; // the library named the rows otherwise: draw anew
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

/** Mark a batch in every chart that has one. */
export function pick(batch) {
  for (const { view } of drawn.values()) {
    try {
      view.signal("picked", batch).runAsync();
    } catch {
      // this chart has no batch to mark
    }
  }
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
