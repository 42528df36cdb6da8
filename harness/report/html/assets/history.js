// The history: a curve for each figure, a table of the runs, and the scenarios that changed.

const WIDTH = 720,
  HEIGHT = 110,
  EDGE = 8;

function trendLine(name, at, runs) {
  const points = runs
    .map((run, number) => ({run, number, found: run.figures[at]}))
    .filter((point) => point.found);
  const whole = points.filter((point) => point.run.complete),
    values = points.map((point) => point.found[0]);
  if (points.length < 2) return null;
  const low = values.reduce((one, two) => Math.min(one, two)),
    high = values.reduce((one, two) => Math.max(one, two)),
    span = high - low;
  const x = (point) => EDGE + ((WIDTH - 2 * EDGE) * point.number) / (runs.length - 1 || 1);
  const y = (point) => (span ? EDGE + ((HEIGHT - 2 * EDGE) * (high - point.found[0])) / span : HEIGHT / 2);
  const text = (value) => points.find((point) => point.found[0] === value).found[1];
  const said = `${name} over ${plural(points.length, "run")}: ${points[0].found[1]} first, ${points.at(-1).found[1]} last, from ${text(low)} to ${text(high)}`;
  return el(
    "section",
    {class: "card", "aria-label": name},
    el("h3", {}, name),
    el(
      "p",
      {class: "meta"},
      el("span", {}, "first ", el("b", {}, points[0].found[1])),
      el("span", {}, "last ", el("b", {}, points.at(-1).found[1])),
      el("span", {}, "from ", el("b", {}, text(low)), " to ", el("b", {}, text(high))),
    ),
    svg(
      "svg",
      {class: "trend", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said},
      svg("polyline", {
        points: whole.map((point) => `${x(point).toFixed(1)},${y(point).toFixed(1)}`).join(" "),
      }),
      ...points.map((point) =>
        svg(
          "circle",
          {
            class: point.run.complete ? null : "part",
            cx: x(point).toFixed(1),
            cy: y(point).toFixed(1),
            r: 3.5,
          },
          svg(
            "title",
            {},
            `${point.run.name}: ${point.found[1]}${point.run.complete ? "" : " (part of a run)"}`,
          ),
        ),
      ),
    ),
  );
}

function runsTable(found) {
  const names = ["run", "commit", "branch", "runs", ...found.figures, "whole"];
  const rows = [...found.runs]
    .reverse()
    .map((run) =>
      el(
        "tr",
        {},
        el("th", {scope: "row"}, run.name),
        el("td", {}, run.commit ? el("code", {title: run.commit}, run.commit.slice(0, 7)) : "–"),
        el("td", {}, run.branch || "–"),
        el("td", {class: "number"}, run.count),
        ...run.figures.map((figure, at) =>
          el(
            "td",
            {class: "number"},
            figure ? figure[1] + (run.unpriced && found.figures[at] === "cost" ? " *" : "") : "–",
          ),
        ),
        el("td", {}, run.complete ? "yes" : "no: " + (run.reason || "no reason is given")),
      ),
    );
  return [
    el("h3", {}, "Runs, the newest first"),
    table("Runs", names, rows, [0, 1, 2, names.length - 1]),
    found.runs.some((run) => run.unpriced)
      ? el("p", {class: "place"}, "* a model without a price counts as 0")
      : null,
  ];
}

function changesTable(found) {
  const known = new Set(ROWS.map((row) => row.id));
  const rows = found.scenarios.map((each) =>
    el(
      "tr",
      {},
      el(
        "td",
        {},
        el(
          "span",
          {class: "badge " + ({failing: "failed", flaky: "error", fixed: "passed"}[each.state] || "skipped")},
          each.state,
        ),
      ),
      el(
        "th",
        {scope: "row", class: "long"},
        known.has(each.id) ? el("a", {href: address("scenario", each.id)}, each.id) : each.id,
      ),
      el(
        "td",
        {class: "recent"},
        el(
          "span",
          {role: "img", "aria-label": "verdicts, the newest last: " + each.recent.join(", ")},
          each.recent.map((verdict) => MARKS[verdict]).join(" "),
        ),
      ),
      el("td", {}, each.when),
    ),
  );
  if (!rows.length) return [el("p", {class: "empty"}, "Each scenario passed in every run that had it.")];
  return [
    el("h3", {}, "Scenarios that changed or fail"),
    table("Scenarios", ["state", "scenario", "last runs", "when"], rows, [0, 1, 2, 3]),
    el(
      "p",
      {class: "place"},
      `${found.more ? plural(found.more, "more scenario") + " changed; " : ""}${plural(found.steady, "scenario")} passed in every run`,
    ),
  ];
}

function historyView() {
  const found = DATA.history,
    head = [el("h2", {}, "History"), found.problem ? el("p", {class: "note warn"}, found.problem) : null];
  if (!found.runs) return head;
  const lines = found.figures.map((name, at) => trendLine(name, at, found.runs)).filter(Boolean);
  return [
    ...head,
    el(
      "p",
      {class: "meta"},
      el(
        "span",
        {},
        `${plural(found.count, "run")} in ${found.name}${found.left_out ? `, the last ${found.runs.length} are shown` : ""}`,
      ),
      found.runs.some((run) => !run.complete) ? el("span", {}, "○ a part of a run") : null,
    ),
    lines.length ? el("div", {class: "panes"}, ...lines) : null,
    ...changesTable(found),
    ...runsTable(found),
  ];
}
