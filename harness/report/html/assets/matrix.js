// The matrix of scenarios and variants. A cell shows the result with a variant, compared with the baseline.

const NEAR = 1e-9;
const KINDS = [
  ["", "every scenario"],
  ["changed", "changed"],
  ["worse", "worse"],
  ["better", "better"],
  ["failing", "fails with every variant"],
];
const CHANGE_MARKS = {better: "▲", worse: "▼", changed: "≠"};

// The scenarios with their rows by variant, and the change of each variant.
function matrixRows() {
  const [first, ...others] = variantNames(),
    byId = new Map();
  for (const row of ROWS) {
    if (!row.variant) continue;
    if (!byId.has(row.id)) byId.set(row.id, {id: row.id, at: byId.size, row, rows: new Map()});
    byId.get(row.id).rows.set(row.variant, row);
  }
  for (const each of byId.values()) {
    const before = each.rows.get(first);
    each.changes = new Map(others.map((name) => [name, changeOf(before, each.rows.get(name))]));
    each.by = new Map(
      others.map((name) => [
        name,
        before && each.rows.has(name) ? each.rows.get(name).score - before.score : 0,
      ]),
    );
    each.words = each.id.toLowerCase();
  }
  return [...byId.values()];
}

// "better", "worse", "changed" (another verdict with the same score), or "".
function changeOf(before, after) {
  if (!before || !after) return "";
  if (after.score > before.score + NEAR) return "better";
  if (after.score < before.score - NEAR) return "worse";
  return before.verdict === after.verdict ? "" : "changed";
}

// The chosen filters: {q, show, as, sort}.
function chosenCells(all, parts) {
  const words = (parts.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean),
    kind = parts.get("show") || "",
    as = parts.get("as");
  const changes = (each) => (as ? [each.changes.get(as)] : [...each.changes.values()]);
  const holds = {
    "": () => true,
    changed: (each) => changes(each).some(Boolean),
    worse: (each) => changes(each).includes("worse"),
    better: (each) => changes(each).includes("better"),
    failing: (each) => [...each.rows.values()].every((row) => NOT_PASSED.has(row.verdict)),
  }[kind];
  const found = all.filter(
    (each) => words.every((word) => each.words.includes(word)) && holds && holds(each),
  );
  const moved = (each) =>
    as ? each.by.get(as) : [...each.by.values()].reduce((least, by) => Math.min(least, by), 0);
  const key = {
    "": (each) => [changes(each).some(Boolean) ? 0 : 1, moved(each)],
    name: (each) => [each.words],
    file: () => [],
  }[parts.get("sort") || ""];
  const keyed = found.map((each) => [key ? key(each) : [], each.at, each]);
  keyed.sort((one, two) => compared(one[0], two[0]) || one[1] - two[1]);
  return keyed.map(([, , each]) => each);
}

function matrixPane(parts) {
  const names = variantNames(),
    all = matrixRows();
  const changed = all.filter((each) => [...each.changes.values()].some(Boolean)).length;
  const holder = el("div", {id: "rows", class: "matrix"}),
    count = el("span", {class: "count", role: "status"});
  const show = () => {
    const found = chosenCells(all, parts);
    count.textContent = `${found.length.toLocaleString("en")} of ${plural(all.length, "scenario")}`;
    holder.replaceChildren(
      found.length ? matrixTable(names, found) : el("p", {class: "empty"}, "No scenario matches."),
    );
  };
  const change = (name, value) => {
    setFilter("variants", parts, name, value);
    show();
  };
  const search = el("input", {
    type: "search",
    id: "search",
    placeholder: "Search scenarios",
    "aria-label": "Search scenarios",
    value: parts.get("q") || "",
  });
  search.addEventListener("input", () => change("q", search.value.trim()));
  const choose = (name, label, options) => {
    const select = el(
      "select",
      {"aria-label": label, id: "matrix-" + name},
      ...options.map(([value, title]) =>
        el("option", {value, selected: value === (parts.get(name) || "")}, title),
      ),
    );
    select.addEventListener("change", () => change(name, options[select.selectedIndex][0]));
    return select;
  };
  const as = [["", "with any variant"], ...names.slice(1).map((name) => [name, "with " + name])];
  const sorts = [
    ["", "changed first"],
    ["name", "by name"],
    ["file", "in the order of the files"],
  ];
  show();
  return el(
    "section",
    {"aria-label": "Scenarios by variant"},
    el(
      "h2",
      {},
      `Scenarios by variant: ${changed.toLocaleString("en")} of ${plural(all.length, "scenario")} changed`,
    ),
    el(
      "p",
      {class: "why"},
      "A cell opens the conversations of ",
      el("b", {}, names[0]),
      " and of the variant side by side.",
    ),
    el(
      "div",
      {class: "filters", role: "search"},
      search,
      choose("show", "which scenarios", KINDS),
      names.length > 2 ? choose("as", "variant", as) : null,
      choose("sort", "order", sorts),
      count,
    ),
    holder,
  );
}

function matrixTable(names, found) {
  const body = el("tbody", {});
  const head = el(
    "tr",
    {},
    ...["scenario", ...names].map((name) => el("th", {scope: "col", title: name}, name)),
  );
  const made = el(
    "table",
    {"aria-rowcount": found.length + 1, "aria-label": "Scenarios by variant", class: heights(found.length)},
    el("thead", {}, head),
    body,
  );
  made.style.setProperty("--variants", names.length);
  drawRows(body, found.length, (at) => matrixRow(found[at], at, names));
  return el(
    "div",
    {class: "scroll", tabindex: 0, role: "group", "aria-label": "Scenarios by variant, scrollable"},
    made,
  );
}

function matrixRow(each, at, names) {
  const [first] = names;
  return el(
    "tr",
    {"aria-rowindex": at + 2, "data-at": at},
    el(
      "th",
      {scope: "row", class: "name", title: each.id},
      el("b", {}, each.row.name),
      el("small", {}, each.row.suite),
    ),
    ...names.map((name) => matrixCell(each, name, first)),
  );
}

function matrixCell(each, name, first) {
  const row = each.rows.get(name);
  if (!row) return el("td", {}, "–");
  const change = each.changes.get(name) || "";
  const to = name === first || !each.rows.has(first) ? scenarioAddress(row) : pairAddress(row);
  const why = change ? checkOf(row, each.rows.get(first), change) : "";
  return el(
    "td",
    {class: "cell " + change, title: why},
    el("a", {href: to}, `${MARKS[row.verdict]} ${row.verdict}`),
    ` ${score(row.score)}`,
    change ? el("small", {}, `${CHANGE_MARKS[change]} ${change}${why ? ": " + why : ""}`) : null,
  );
}

// Returns the check that made a scenario better or worse, from the score, or else the cause of the failure.
function checkOf(row, before, change) {
  const known = DATA.score && (DATA.score.checks[row.variant] || {})[row.id];
  return known || (change === "better" ? before.cause : row.cause).slice(0, 200);
}
