// The table of scenarios. Only visible rows are in the document, so that ten thousand rows scroll smoothly.

const ROW_HEIGHT = 46;
const ALL_AT_ONCE = 200;
const VERDICT_ORDER = {error: 0, failed: 1, passed: 2, skipped: 3};
const CHANGE_ORDER = {new: 0, still: 1, fixed: 2, added: 3, moved: 4};
// `text` fills a cell, and the longest one makes the width of a column; the spaces are for the edges of the badges.
const COLUMNS = [
  {
    name: "verdict",
    title: "verdict",
    by: (row) => [VERDICT_ORDER[row.verdict], CHANGE_ORDER[row.change] ?? 5, row.score],
    text: (row) => `${MARKS[row.verdict]} ${row.verdict} ` + (row.change ? `   ${row.change}` : ""),
  },
  {name: "name", title: "scenario", by: (row) => [row.name.toLowerCase()], text: heading},
  {name: "score", title: "score", number: true, by: (row) => [row.score], text: (row) => score(row.score)},
  {
    name: "latency",
    title: "latency",
    number: true,
    by: (row) => [row.latency],
    text: (row) => seconds(row.latency),
  },
  {
    name: "tokens",
    title: "tokens",
    number: true,
    by: (row) => [row.tokens],
    text: (row) => row.tokens.toLocaleString("en"),
  },
  {name: "cost", title: "cost", number: true, by: (row) => [row.cost], text: (row) => price(row.cost)},
  {name: "tags", title: "tags", by: (row) => [row.tags.join(" ")], text: (row) => row.tags.join(", ")},
  {name: "cause", title: "cause", by: (row) => [row.cause], text: (row) => row.cause},
];
const FILTERS = [
  {name: "verdict", of: (row) => [row.verdict]},
  {name: "change", of: (row) => (row.change ? [row.change] : [])},
  {name: "tag", of: (row) => row.tags},
  {name: "dialect", of: (row) => [row.dialect]},
  {name: "manifest", of: (row) => [row.manifest]},
  {name: "variant", of: (row) => (row.variant ? [row.variant] : [])},
  {name: "suite", of: (row) => [row.suite]},
];

// The rows of the last table in its order, for the keys j, k and n.
let listed = ROWS;

for (const row of ROWS)
  row.words = [row.id, row.variant, row.cause, row.tags.join(" "), row.manifest].join(" ").toLowerCase();

function compared(one, two) {
  for (let at = 0; at < one.length; at++) {
    if (one[at] < two[at]) return -1;
    if (one[at] > two[at]) return 1;
  }
  return 0;
}

function chosenRows(parts) {
  const words = (parts.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = FILTERS.filter((filter) => parts.get(filter.name));
  const found = ROWS.filter(
    (row) =>
      words.every((word) => row.words.includes(word)) &&
      wanted.every((filter) => filter.of(row).includes(parts.get(filter.name))),
  );
  const sort = parts.get("sort") || "verdict",
    down = sort.startsWith("-");
  const column = COLUMNS.find((each) => each.name === sort.replace("-", "")) || COLUMNS[0];
  const keyed = found.map((row, at) => [column.by(row), at, row]);
  keyed.sort((one, two) => (down ? -1 : 1) * compared(one[0], two[0]) || one[1] - two[1]);
  return keyed.map(([, , row]) => row);
}

// A scenario has a row for each of its variants.
const SCENARIOS = new Set(ROWS.map((row) => row.id)).size;
const ALL_ROWS =
  SCENARIOS === ROWS.length
    ? plural(SCENARIOS, "scenario")
    : `${plural(ROWS.length, "row")} (${plural(SCENARIOS, "scenario")} as variants)`;

// Sets or removes a filter of a view, and updates the address.
function setFilter(view, parts, name, value) {
  if (value) parts.set(name, value);
  else parts.delete(name);
  const more = Object.fromEntries([...parts].filter(([key]) => key !== view));
  history.replaceState(history.state, "", address(view, "", more));
}

function scenariosView(parts) {
  const holder = el("div", {id: "rows"});
  const count = el("span", {class: "count", role: "status"});
  const show = () => {
    listed = chosenRows(parts);
    const passed = listed.filter((row) => row.verdict === "passed").length;
    count.textContent = `${listed.length.toLocaleString("en")} of ${ALL_ROWS}, ${passed.toLocaleString("en")} passed`;
    holder.replaceChildren(
      listed.length ? rowsTable(parts, change) : el("p", {class: "empty"}, "No scenario is like that."),
    );
  };
  const change = (name, value) => {
    setFilter("scenarios", parts, name, value);
    show();
    return holder;
  };
  const search = el("input", {
    type: "search",
    id: "search",
    placeholder: "Search names, causes, tags",
    "aria-label": "Search scenarios",
    value: parts.get("q") || "",
  });
  search.addEventListener("input", () => change("q", search.value.trim()));
  const clear = el(
    "button",
    {
      type: "button",
      onclick: () => {
        location.hash = "#scenarios";
      },
    },
    "Clear",
  );
  show();
  return [
    el(
      "div",
      {class: "filters", role: "search"},
      search,
      ...FILTERS.map((filter) => choice(filter, parts, change)),
      clear,
      count,
    ),
    holder,
  ];
}

function choice(filter, parts, change) {
  const counts = new Map();
  for (const row of ROWS) for (const value of filter.of(row)) counts.set(value, (counts.get(value) || 0) + 1);
  const chosen = parts.get(filter.name);
  if (counts.size < 2 && !chosen) return null;
  const options = [...counts]
    .sort()
    .map(([value, times]) => el("option", {value, selected: value === chosen}, `${value} (${times})`));
  const select = el(
    "select",
    {"aria-label": filter.name, id: "filter-" + filter.name},
    el("option", {value: ""}, `every ${filter.name}`),
    ...options,
  );
  select.addEventListener("change", () =>
    change(filter.name, select.value && [...counts.keys()].sort()[select.selectedIndex - 1]),
  );
  return select;
}

function rowsTable(parts, change) {
  const used = COLUMNS.filter((column) => column.name !== "cost" || ROWS.some((row) => row.cost))
    .filter((column) => column.name !== "tags" || ROWS.some((row) => row.tags.length))
    .filter((column) => column.name !== "cause" || listed.some((row) => row.cause));
  const sort = parts.get("sort") || "verdict";
  const head = el("tr", {"aria-rowindex": 1}, ...used.map((column) => sortable(column, sort, change)));
  const body = el("tbody", {});
  const table = el(
    "table",
    {"aria-rowcount": listed.length + 1, "aria-label": "Scenarios", class: heights(listed.length)},
    el("thead", {}, head),
    body,
  );
  drawRows(body, listed.length, (at) => tableRow(listed[at], at, used));
  return table;
}

function sortable(column, sort, change) {
  const own = sort.replace("-", "") === column.name,
    down = sort.startsWith("-");
  const next =
    own && !down ? "-" + column.name : own ? column.name : column.number ? "-" + column.name : column.name;
  const pressed = () => change("sort", next).querySelector(`th.${column.name} button`).focus();
  const button = el(
    "button",
    {class: "plain", type: "button", onclick: pressed},
    column.title,
    own ? (down ? " ↓" : " ↑") : "",
  );
  const head = el(
    "th",
    {
      scope: "col",
      class: column.name + (column.number ? " number" : ""),
      "aria-sort": own ? (down ? "descending" : "ascending") : null,
    },
    button,
  );
  head.style.setProperty("--chars", Math.max(button.textContent.length, longest(column)));
  return head;
}

// The length of the longest text of a column, in any row of the page: filters do not move the columns.
function longest(column) {
  column.longest ??= ROWS.reduce((most, row) => Math.max(most, column.text(row).length), 0);
  return column.longest;
}

function tableRow(row, at, used) {
  const cells = used.map((column) => (CELLS[column.name] || textCell)(row, column));
  const element = el("tr", {"aria-rowindex": at + 2, "data-at": at}, ...cells);
  element.addEventListener("click", (event) => {
    if (!event.target.closest("a") && !String(getSelection())) location.hash = scenarioAddress(row);
  });
  return element;
}

const CELLS = {
  verdict: (row) =>
    el(
      "td",
      {class: "verdict"},
      badge(row.verdict),
      row.change ? [" ", el("span", {class: "badge new"}, row.change)] : null,
    ),
  name: (row) =>
    el(
      "td",
      {class: "name"},
      el("a", {href: scenarioAddress(row), title: heading(row)}, heading(row)),
      el("small", {}, runsOf(row) + row.suite),
    ),
};

function textCell(row, {name, number, text}) {
  const said = text(row);
  return number
    ? el("td", {class: name + " number"}, said)
    : el("td", {class: name, title: said.slice(0, 500)}, said.slice(0, 200));
}

function runsOf(row) {
  if (row.runs.length === 1) return "";
  const passed = row.runs.filter((run) => run[2] === "passed").length;
  return `${passed} of ${row.runs.length} runs passed · `;
}

// The number of rows of the current table; most of them are not in the document.
let rowCount = 0;

// The class of a table: all rows of a large table have one height, so that those out of sight can be left out.
function heights(count) {
  return count > ALL_AT_ONCE ? "even" : null;
}

// Fills a table with rows. A large table gets only its visible rows, updated when the page is scrolled.
function drawRows(body, count, made) {
  rowCount = count;
  if (count > ALL_AT_ONCE) return virtual(body, count, made);
  body.append(...Array.from({length: count}, (_, at) => made(at)));
}

function virtual(body, count, made) {
  const gap = () => el("tr", {class: "gap", "aria-hidden": "true"}, el("td", {}));
  const above = gap(),
    below = gap();
  let first = -1,
    last = -1,
    height = ROW_HEIGHT;
  const draw = () => {
    if (!body.isConnected) {
      removeEventListener("scroll", draw);
      removeEventListener("resize", draw);
      return;
    }
    const top = body.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(-top / height) - 20),
      to = Math.min(count, Math.ceil((innerHeight - top) / height) + 20);
    if (from === first && to === last) return;
    const focused = document.activeElement && document.activeElement.closest("tr[data-at]");
    const kept = focused && body.contains(focused) ? Number(focused.dataset.at) : null;
    first = from;
    last = to;
    above.firstChild.style.height = from * height + "px";
    below.firstChild.style.height = Math.max(0, count - to) * height + "px";
    body.replaceChildren(
      above,
      ...Array.from({length: Math.max(0, to - from)}, (_, at) => made(from + at)),
      below,
    );
    if (kept !== null && kept >= from && kept < to) focusRow(kept);
    const row = body.querySelector("tr[data-at]"),
      shown = row ? row.getBoundingClientRect().height : height;
    if (Math.abs(shown - height) <= 1) return;
    height = shown; // rows are higher on a narrow screen
    first = -1;
    draw();
  };
  addEventListener("scroll", draw, {passive: true});
  addEventListener("resize", draw, {passive: true});
  requestAnimationFrame(draw);
}

function focusRow(at) {
  const row = document.querySelector(`#rows tr[data-at="${at}"]`);
  if (!row) return false;
  row.querySelector("a").focus({preventScroll: true});
  row.scrollIntoView({block: "nearest"});
  return true;
}

function step(by) {
  const focused = document.activeElement && document.activeElement.closest("#rows tr[data-at]");
  const shownRow = document.querySelector("#rows tr[data-at]");
  if (!shownRow) return;
  const next = focused ? Number(focused.dataset.at) + by : Number(shownRow.dataset.at);
  if (next >= 0 && next < rowCount) focusRow(next);
}
