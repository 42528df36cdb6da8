// Variants side by side: figures, the matrix of scenarios, latency and cost by node.

// The names of the variants, the baseline first: that of the score, the one called baseline, or the first.
function variantNames() {
  if (DATA.score) return DATA.score.names;
  const names = Object.keys(DATA.summary.variants);
  return names.includes("baseline") ? ["baseline", ...names.filter((name) => name !== "baseline")] : names;
}

const VARIANT_FIGURES = [
  ["runs", (group) => group.runs, String],
  ["pass rate", (group) => group.pass_rate, percent, "better", "worse"],
  ["95 % interval", (group) => interval(group), String],
  ["fitness", (group) => group.fitness, score, "better", "worse"],
  ["p50", (group) => group.latency.p50, seconds, "slower", "faster"],
  ["p95", (group) => group.latency.p95, seconds, "slower", "faster"],
  ["tokens", (group) => group.tokens.total, (value) => value.toLocaleString("en"), "more", "fewer"],
  ["cost", (group) => (unpricedOf(group).length ? null : group.cost), price, "dearer", "cheaper"],
];

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
  const rows = VARIANT_FIGURES.map(([title, of, unit, up, down]) =>
    el(
      "tr",
      {},
      el("th", {scope: "row"}, title),
      ...names.map((name, at) => {
        const group = DATA.summary.variants[name],
          moved = at && up ? movedBy(of(group), of(first), unit, up, down) : "";
        return el(
          "td",
          {class: "number"},
          title === "cost" ? costOf(group) : unit(of(group)),
          moved ? el("small", {class: "below"}, moved) : null,
        );
      }),
    ),
  );
  const head = names.map((name) => el("a", {href: address("scenarios", "", {variant: name})}, name));
  return el(
    "section",
    {class: "card", "aria-label": "Figures of the variants"},
    el("h3", {}, "Figures", names.length > 1 ? `, against ${names[0]}` : ""),
    table("Figures of the variants", ["figure", ...head], rows),
  );
}

function movedBy(now, before, unit, up, down) {
  if (now === null || before === null) return "";
  const by =
    unit === percent ? `${(Math.abs(now - before) * 100).toFixed(1)} points` : unit(Math.abs(now - before));
  if (now === before) return "the same";
  return now > before ? `▲ ${by} ${up}` : `▼ ${by} ${down}`;
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
