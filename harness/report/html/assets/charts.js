// Distributions of latency and score, the slowest scenarios, groups of runs, warnings.

const BINS = 24;

// Latencies range from milliseconds to hours, so bins are logarithmic; zero has a bin of its own.
function logBins(values) {
  const some = values.filter((value) => value > 0),
    none = values.length - some.length;
  const [low, high] = extent(some),
    ratio = some.length ? high / low : 1;
  const edge = (at) => low * ratio ** (at / BINS);
  const bins = Array.from({length: BINS}, (_, at) => ({from: edge(at), to: edge(at + 1), count: 0}));
  for (const value of some)
    bins[ratio > 1 ? Math.min(BINS - 1, Math.floor((BINS * Math.log(value / low)) / Math.log(ratio))) : 0]
      .count++;
  const found = ratio > 1 ? bins : some.length ? [{from: low, to: high, count: some.length}] : [];
  return none ? [{from: 0, to: 0, count: none}, ...found] : found;
}

// Returns the minimum and maximum of any number of values.
function extent(values) {
  return values.reduce(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Infinity, -Infinity],
  );
}

function evenBins(values) {
  const bins = Array.from({length: BINS}, (_, at) => ({from: at / BINS, to: (at + 1) / BINS, count: 0}));
  for (const value of values) bins[Math.min(BINS - 1, Math.floor(BINS * value))].count++;
  return bins;
}

function histogram(bins, label, unit) {
  const most = Math.max(...bins.map((bin) => bin.count), 1),
    width = 720,
    height = 190,
    step = width / bins.length;
  const name = (bin) => (bin.from === bin.to ? unit(bin.from) : `${unit(bin.from)} to ${unit(bin.to)}`);
  const bars = bins.map((bin, at) => {
    const tall = bin.count && Math.max(2, (160 * bin.count) / most);
    return svg(
      "g",
      {},
      svg("title", {}, `${name(bin)}: ${bin.count}`),
      svg("rect", {x: at * step + 1, y: height - tall, width: step - 2, height: tall}),
      bin.count
        ? svg("text", {x: (at + 0.5) * step, y: height - tall - 4, "text-anchor": "middle"}, bin.count)
        : null,
    );
  });
  const every = Math.ceil(bins.length / 7);
  const ticks = bins.map((bin, at) =>
    at % every || at > bins.length - 3
      ? null
      : svg("text", {x: at * step + 2, y: height + 16}, unit(bin.from)),
  );
  const last = svg("text", {x: width, y: height + 30, "text-anchor": "end"}, "to " + unit(bins.at(-1).to));
  const said = `${label}: ${bins
    .filter((bin) => bin.count)
    .map((bin) => `${bin.count} at ${name(bin)}`)
    .join(", ")}`;
  return svg(
    "svg",
    {class: "histogram", viewBox: `0 0 ${width} ${height + 34}`, role: "img", "aria-label": said},
    ...bars,
    svg("line", {class: "axis", x1: 0, x2: width, y1: height, y2: height}),
    ...ticks,
    last,
  );
}

function latencyView() {
  const costs = [el("h2", {}, "Tokens and cost"), modelsPane(), nodesOfAllPane()];
  const runs = ROWS.flatMap((row) => row.runs).filter((run) => run[2] === "passed" || run[2] === "failed");
  if (!runs.length)
    return [el("h2", {}, "Latency and score"), el("p", {class: "empty"}, "No run was judged."), ...costs];
  const total = DATA.summary.total.latency;
  const marks = Object.entries(total).map(([name, value]) =>
    el("span", {}, name + " ", el("b", {}, seconds(value))),
  );
  const latencies = el(
    "section",
    {class: "card", "aria-label": "Distribution of latency"},
    el("h3", {}, "Virtual latency of runs"),
    el("p", {class: "meta"}, ...marks),
    histogram(logBins(runs.map((run) => run[4])), "Latency of runs", seconds),
    el("p", {class: "why"}, "The scale is logarithmic. Each bar shows its number of runs."),
  );
  const scores = el(
    "section",
    {class: "card", "aria-label": "Distribution of score"},
    el("h3", {}, "Score of runs"),
    histogram(evenBins(runs.map((run) => run[3])), "Score of runs", (value) => value.toFixed(2)),
  );
  return [
    el("h2", {}, "Latency and score"),
    el("div", {class: "panes"}, latencies, scores),
    slowestPane(),
    ...costs,
  ];
}

function slowestPane() {
  const slowest = [...ROWS]
    .sort((one, two) => two.latency - one.latency)
    .slice(0, 15)
    .filter((row) => row.latency > 0);
  if (!slowest.length) return null;
  const rows = slowest.map((row) =>
    el(
      "tr",
      {},
      el(
        "th",
        {scope: "row"},
        el("a", {href: scenarioAddress(row)}, heading(row)),
        " ",
        el("small", {}, row.suite),
      ),
      ...numbers(seconds(row.latency)),
    ),
  );
  return el(
    "section",
    {class: "card", "aria-label": "Slowest scenarios"},
    el("h3", {}, "Slowest scenarios"),
    table("Slowest scenarios", ["scenario", "latency"], rows),
  );
}

const GROUPS = [
  ["suites", "suite"],
  ["tags", "tag"],
  ["dialects", "dialect"],
  ["manifests", "manifest"],
];

function groupsView() {
  const found = GROUPS.filter(([part]) => Object.keys(DATA.summary[part] || {}).length);
  return [
    el("h2", {}, "Groups of runs"),
    ...found.flatMap(([part, filter]) => [
      el("h3", {}, part[0].toUpperCase() + part.slice(1)),
      groupsTable(part, filter),
    ]),
  ];
}

function groupsTable(part, filter) {
  const titles = [
    filter,
    "runs",
    "passed",
    "failed",
    "errors",
    "skipped",
    ...DATA.figures.flatMap(({label}) => (label === "pass rate" ? [label, "95 % interval"] : [label])),
  ];
  const rows = Object.entries(DATA.summary[part]).map(([name, group]) =>
    el(
      "tr",
      {},
      el("th", {scope: "row"}, el("a", {href: address("scenarios", "", {[filter]: name})}, name)),
      ...numbers(
        group.runs,
        group.passed,
        group.failed,
        group.errors,
        group.skipped,
        ...DATA.figures.flatMap((figure) => {
          const shown = figureText(figure, group);
          return figure.label === "pass rate" ? [shown, interval(group)] : [shown];
        }),
      ),
    ),
  );
  return table(part, titles, rows);
}

function interval(group) {
  return group.pass_rate === null ? "–" : group.pass_rate_interval.map(percent).join(" to ");
}

function warningsView() {
  const warnings = DATA.summary.warnings;
  if (!warnings.length) return [el("p", {class: "empty"}, "No warnings.")];
  const cards = warnings.map((warning) =>
    el(
      "div",
      {class: "card"},
      el("p", {}, text(warning.text)),
      el(
        "small",
        {},
        `${plural(warning.times, "time")} in ${plural(warning.scenarios, "scenario")}, such as `,
      ),
      ...warning.names
        .slice(0, 2)
        .flatMap((id, at) => [at ? ", " : "", el("a", {href: address("scenario", id)}, id)]),
    ),
  );
  const left = (DATA.summary.left_out || {}).warnings;
  return [
    el("h2", {}, "Warnings"),
    ...someOf(cards, 300, "warning"),
    left ? el("p", {class: "note"}, `${plural(left, "more warning")}, in results.jsonl`) : null,
  ];
}
