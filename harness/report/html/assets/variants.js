// Variants side by side: figures, the matrix of scenarios, latency and cost by node.

// The names of the variants, the baseline first: that of the score, the one called baseline, or the first.
function variantNames() {
  if (DATA.score) return DATA.score.names;
  const names = Object.keys(DATA.summary.variants);
  return names.includes("baseline") ? ["baseline", ...names.filter((name) => name !== "baseline")] : names;
}

function variantsView(parts) {
  const others = ROWS.filter((row) => !row.variant).length;
  return [
    DATA.score ? null : el("h2", {}, "Variants"),
    others
      ? el(
          "p",
          {class: "note"},
          `${plural(others, "scenario")} ran without a variant and ${others === 1 ? "is" : "are"} in none of these figures.`,
        )
      : null,
    DATA.score ? null : figuresOfVariants(),
    matrixPane(parts),
    nodesOfVariants(),
  ];
}

function figuresOfVariants() {
  const names = variantNames(),
    first = DATA.summary.variants[names[0]];
  const line = (title, cell) =>
    el("tr", {}, el("th", {scope: "row"}, title), ...names.map((name, at) => cell(DATA.summary.variants[name], at)));
  const plain = (of) => (group) => el("td", {class: "number"}, of(group));
  const rows = [
    line("runs", plain((group) => group.runs)),
    ...DATA.figures.flatMap((figure) => [
      line(figure.label, (group, at) => {
        const moved = at ? movedBy(figure, figureOf(figure, group), figureOf(figure, first)) : "";
        return el(
          "td",
          {class: "number"},
          figureText(figure, group),
          moved ? el("small", {class: "below"}, moved) : null,
        );
      }),
      ...(figure.label === "pass rate" ? [line("95 % interval", plain(interval))] : []),
    ]),
  ];
  const head = names.map((name) => el("a", {href: address("scenarios", "", {variant: name})}, name));
  return el(
    "section",
    {class: "card", "aria-label": "Figures of the variants"},
    el("h3", {}, "Figures", names.length > 1 ? `, against ${names[0]}` : ""),
    table("Figures of the variants", ["figure", ...head], rows),
  );
}

function movedBy({unit, more, less}, now, before) {
  if (now === null || before === null) return "";
  const size = Math.abs(now - before),
    by = unit === "percent" ? `${(size * 100).toFixed(1)} points` : UNITS[unit](size);
  if (now === before) return "the same";
  return now > before ? `▲ ${by} ${more}` : `▼ ${by} ${less}`;
}

function nodesOfVariants() {
  const names = variantNames();
  const found = DATA.manifests
    .flatMap((manifest) => manifest.nodes.map((each) => ({manifest, ...each})))
    .filter(({variants}) =>
      names.some((name) => variants[name] && (variants[name].max || variants[name].llm_calls)),
    );
  if (!found.length) return null;
  const cell = (of) =>
    of ? [seconds(of.p95), el("small", {class: "below"}, of.llm_calls ? nodeCost(of) : "no model")] : "–";
  const rows = found.map(({manifest, node, variants}) =>
    el(
      "tr",
      {},
      el("th", {scope: "row"}, node, " ", el("small", {}, manifest.name)),
      ...names.map((name) => el("td", {class: "number"}, cell(variants[name]))),
    ),
  );
  return el(
    "section",
    {class: "card", "aria-label": "Latency and cost of nodes by variant"},
    el("h3", {}, "Nodes: latency (p95) and cost of all runs"),
    table("Latency and cost of nodes by variant", ["node", ...names], someOf(rows, 60, "node")),
  );
}
