// Distributions of latency and score, groups of runs side by side, warnings.

function histogram(values, label, unit, bounds) {
  const bins = Array.from({length: 24}, () => 0), [low, high] = bounds, span = high - low || 1;
  for (const value of values) bins[Math.min(23, Math.floor(24 * (value - low) / span))]++;
  const most = Math.max(...bins, 1), width = 720, height = 190;
  const bars = bins.map((count, at) => svg("g", {}, svg("title", {}, `${unit(low + span * at / 24)} to ${unit(low + span * (at + 1) / 24)}: ${count}`), svg("rect", {x: at * width / 24 + 1, y: height - 160 * count / most, width: width / 24 - 2, height: 160 * count / most})));
  const counts = bins.map((count, at) => count ? svg("text", {x: (at + 0.5) * width / 24, y: height - 160 * count / most - 4, "text-anchor": "middle"}, count) : null);
  const said = `${label}: from ${unit(low)} to ${unit(high)}, ${bins.map((count, at) => count ? `${count} near ${unit(low + span * (at + 0.5) / 24)}` : "").filter(Boolean).join(", ")}`;
  return svg("svg", {class: "histogram", viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": said}, ...bars, ...counts, svg("line", {class: "axis", x1: 0, x2: width, y1: height, y2: height}), svg("text", {x: 0, y: height + 16}, unit(low)), svg("text", {x: width, y: height + 16, "text-anchor": "end"}, unit(high)));
}

function latencyView() {
  const runs = ROWS.flatMap((row) => row.runs).filter((run) => run[2] === "passed" || run[2] === "failed");
  if (!runs.length) return [el("p", {class: "empty"}, "No run was judged.")];
  const latencies = runs.map((run) => run[4]), scores = runs.map((run) => run[3]), total = DATA.summary.total.latency;
  const slowest = [...ROWS].sort((one, two) => two.latency - one.latency).slice(0, 15).filter((row) => row.latency > 0);
  const marks = ["p50", "p90", "p95", "p99", "max"].map((name) => el("span", {}, name + " ", el("b", {}, seconds(total[name]))));
  return [el("h2", {}, "Latency and score"), el("div", {class: "panes"},
    el("section", {class: "card", "aria-label": "Distribution of latency"}, el("h3", {}, "Virtual latency of runs"), el("p", {class: "meta"}, ...marks), histogram(latencies, "Latency of runs", seconds, [0, latencies.reduce((one, two) => Math.max(one, two), 0)])),
    el("section", {class: "card", "aria-label": "Distribution of score"}, el("h3", {}, "Score of runs"), histogram(scores, "Score of runs", (value) => value.toFixed(2), [0, 1]))),
    slowest.length ? el("section", {class: "card", "aria-label": "Slowest scenarios"}, el("h3", {}, "Slowest scenarios"), el("table", {}, el("tbody", {}, ...slowest.map((row) => el("tr", {}, el("td", {class: "number"}, seconds(row.latency)), el("td", {}, el("a", {href: scenarioAddress(row)}, heading(row)), " ", el("small", {}, row.suite))))))) : null];
}

function groupsView() {
  const found = [el("h2", {}, "Groups of runs")];
  for (const [part, filter] of [["variants", "variant"], ["suites", "suite"], ["tags", "tag"], ["dialects", "dialect"]]) {
    const groups = Object.entries(DATA.summary[part]);
    if (!groups.length) continue;
    const names = [filter, "runs", "passed", "failed", "errors", "skipped", "pass rate", "95 % interval", "fitness", "p50", "p95", "tokens", "cost"];
    const rows = groups.map(([name, group]) => el("tr", {}, el("th", {scope: "row"}, el("a", {href: address("scenarios", "", {[filter]: name})}, name)),
      ...[group.runs, group.passed, group.failed, group.errors, group.skipped, percent(group.pass_rate), group.pass_rate === null ? "–" : group.pass_rate_interval.map(percent).join(" to "), score(group.fitness), seconds(group.latency.p50), seconds(group.latency.p95), group.tokens.total.toLocaleString("en"), money(group.cost)].map((value) => el("td", {class: "number"}, value))));
    found.push(el("h3", {}, part[0].toUpperCase() + part.slice(1)), el("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": part + ", scrollable"}, el("table", {}, el("thead", {}, el("tr", {}, ...names.map((name, at) => el("th", {scope: "col", class: at ? "number" : ""}, name)))), el("tbody", {}, ...rows))));
  }
  return found;
}

function warningsView() {
  const warnings = DATA.summary.warnings;
  if (!warnings.length) return [el("p", {class: "empty"}, "Nothing was warned of.")];
  return [el("h2", {}, "Warnings"), ...warnings.slice(0, 300).map((warning) => el("div", {class: "card"}, el("p", {}, text(warning.text)), el("small", {}, `${plural(warning.times, "time")} in ${plural(warning.scenarios, "scenario")}, such as `), ...warning.names.slice(0, 2).flatMap((id, at) => [at ? ", " : "", el("a", {href: address("scenario", id)}, id)])))];
}
