// Selects the view to show, and handles keys.

// Views with a tab: [name, title, function from the parts of the address to elements].
const VARIANTS = variantNames().length
  ? [["variants", () => `Variants ${variantNames().length}`, variantsView]]
  : [];
const TABS = [
  ...(DATA.score ? VARIANTS : []),
  [
    "scenarios",
    () => `Scenarios ${SCENARIOS.toLocaleString("en")}`,
    (parts) => [...removed(), ...scenariosView(parts)],
  ],
  ["manifests", () => `Manifests ${DATA.manifests.length}`, manifestsView],
  ...(DATA.score ? [] : VARIANTS),
  ["latency", () => "Latency and cost", latencyView],
  ["groups", () => "Groups", groupsView],
  ["warnings", () => `Warnings ${DATA.summary.warnings.length}`, warningsView],
  ...(DATA.history ? [["history", () => "History", historyView]] : []),
];
// Views of a single item, and the tab that they belong to.
const OF_TAB = {scenario: "scenarios", manifest: "manifests", pair: "variants"};

function scenarioOf(what, parts) {
  const variant = parts.get("variant");
  return (
    ROWS.find((row) => row.id === what && (row.variant || null) === variant) ||
    ROWS.find((row) => row.id === what)
  );
}

function viewOf({view, what, parts}) {
  if (view === "scenario") {
    const row = scenarioOf(what, parts);
    return row ? scenarioView(row, parts) : missing("scenario", what);
  }
  if (view === "pair") {
    const row = scenarioOf(what, parts);
    return row ? pairView(row, parts) : missing("scenario", what);
  }
  if (view === "manifest") {
    const found = DATA.manifests.find((each) => each.name === what);
    return found ? manifestView(found) : missing("manifest", what);
  }
  const [, , shown] = TABS.find(([name]) => name === view) || TABS[0];
  return shown(parts);
}

function missing(kind, what) {
  return [
    el("p", {class: "empty"}, `This run has no ${kind} `, el("b", {}, what), "."),
    el("p", {}, el("a", {href: "#scenarios"}, "All scenarios")),
  ];
}

function removed() {
  if (!DATA.removed.length) return [];
  return [
    el(
      "details",
      {class: "note"},
      el(
        "summary",
        {},
        `${plural(DATA.removed.length, "scenario")} of the baseline ${DATA.removed.length === 1 ? "is" : "are"} not in this run`,
      ),
      ...someOf(
        DATA.removed.map((id) => el("div", {}, id)),
        200,
        "scenario",
      ),
    ),
  ];
}

function show() {
  const at = parse(location.hash),
    tab = OF_TAB[at.view] || (TABS.some(([name]) => name === at.view) ? at.view : TABS[0][0]),
    isOne = at.view in OF_TAB;
  document
    .getElementById("tabs")
    .replaceChildren(
      ...TABS.map(([name, title]) =>
        el("a", {href: "#" + name, "aria-current": name === tab ? "page" : null}, title()),
      ),
    );
  document.getElementById("causes").hidden = tab !== "scenarios" || isOne || at.parts.size > 1;
  const verdicts = document.getElementById("scored");
  if (verdicts) verdicts.hidden = tab !== "variants" || isOne;
  document.body.classList.toggle("inside", isOne || tab !== TABS[0][0]);
  document.getElementById("view").replaceChildren(...viewOf(at).flat().filter(Boolean));
  document.getElementById("main").focus({preventScroll: true});
  if (isOne) scrollTo(0, 0);
  else if (at.parts.size > 1) document.getElementById("view").scrollIntoView();
}

function nextFailure() {
  const at = parse(location.hash),
    failing = listed.filter((row) => NOT_PASSED.has(row.verdict));
  if (!failing.length) return;
  const current = at.view === "scenario" ? failing.indexOf(scenarioOf(at.what, at.parts)) : -1;
  location.hash = scenarioAddress(failing[(current + 1) % failing.length]);
}

// Counts the views of this page in the browser history. There are none if a link opened the page.
function countView() {
  if (history.state === null) history.replaceState({depth: ++depth}, "");
  else depth = history.state.depth;
}

let depth = -1;

function leave() {
  const {view} = parse(location.hash);
  if (!OF_TAB[view]) return;
  if (history.state === null || depth > 0)
    history.back(); // null: it is not counted yet
  else location.hash = "#" + OF_TAB[view];
}

const KEYS = {
  "/": () => {
    const search = document.getElementById("search");
    if (search) search.focus();
    else {
      location.hash = "#scenarios";
      setTimeout(() => document.getElementById("search").focus());
    }
  },
  j: () => step(1),
  k: () => step(-1),
  n: nextFailure,
  ArrowRight: () => stepEvent(1),
  ArrowLeft: () => stepEvent(-1),
  Escape: leave,
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key.startsWith("Arrow") && !document.querySelector(".story")) return;
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});
addEventListener("hashchange", countView);
addEventListener("hashchange", () =>
  location.hash === "#main" ? document.getElementById("main").focus() : show(),
);
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details.cause")) each.open = true;
});
document.getElementById("tabs").hidden = false;
// The matrix shows these scenarios, too; the table is for print.
if (DATA.score) document.getElementById("changed").hidden = true;
document.getElementById("keys").hidden = false;
countView();
show();
