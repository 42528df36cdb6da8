// Cost of models and nodes.

function unpricedOf(group) {
  return Object.entries(group.models)
    .filter(([, model]) => model.cost === null)
    .map(([name]) => name);
}

// Formats the cost of a group of summary.json, with the models that count as 0.
function costOf(group) {
  const unpriced = unpricedOf(group);
  return price(group.cost) + (unpriced.length ? ` (no price of ${unpriced.join(", ")})` : "");
}

const UNITS = {
  percent,
  score,
  seconds,
  count: (value) => (value === null ? "–" : value.toLocaleString("en")),
  dollars: price,
};

// Returns a figure of a group of summary.json; null where it is not known, as a cost of models without a price.
function figureOf({path, unit}, group) {
  if (unit === "dollars" && unpricedOf(group).length) return null;
  return path.reduce((found, name) => found?.[name] ?? null, group);
}

function figureText(figure, group) {
  return figure.unit === "dollars" ? costOf(group) : UNITS[figure.unit](figureOf(figure, group));
}

function modelsPane() {
  const models = Object.entries(DATA.summary.total.models).sort(
    ([, one], [, two]) => (two.cost ?? 0) - (one.cost ?? 0),
  );
  const pane = el(
    "section",
    {class: "card", "aria-label": "Tokens and cost by model"},
    el("h3", {}, "By model"),
  );
  if (!models.length) {
    pane.append(el("p", {class: "empty"}, "No model was called."));
    return pane;
  }
  const rows = models.map(([name, model]) =>
    el("tr", {}, el("th", {scope: "row"}, name), ...numbers(...usageCells(model), price(model.cost))),
  );
  pane.append(table("Tokens and cost by model", ["model", "calls", "tokens in", "tokens out", "cost"], rows));
  if (models.some(([, model]) => model.cost === null))
    pane.append(
      el(
        "p",
        {class: "why"},
        "A model without a price counts as 0. Set its price in [tool.harness.prices] of pyproject.toml.",
      ),
    );
  return pane;
}

function usageCells(usage) {
  return [usage.llm_calls, usage.input_tokens, usage.output_tokens].map((count) =>
    count.toLocaleString("en"),
  );
}

// The nodes of all manifests, by cost and then by latency, the highest first.
function nodesOfAllPane() {
  const found = DATA.manifests
    .flatMap((manifest) => manifest.nodes.map((each) => ({manifest, ...each})))
    .filter(({all}) => all.max || all.llm_calls);
  if (!found.length) return null;
  found.sort((one, two) => two.all.cost - one.all.cost || (two.all.p95 ?? 0) - (one.all.p95 ?? 0));
  const rows = found.map(({manifest, node, all}) =>
    el(
      "tr",
      {},
      el("th", {scope: "row"}, node),
      el("td", {}, el("a", {href: address("manifest", manifest.name)}, manifest.name)),
      ...nodeCells(all),
    ),
  );
  return el(
    "section",
    {class: "card", "aria-label": "Latency, tokens and cost by node"},
    el("h3", {}, "By node"),
    table(
      "Latency, tokens and cost by node",
      ["node", "manifest", ...NODE_TITLES],
      someOf(rows, 40, "node"),
      [0, 1],
    ),
  );
}

const NODE_TITLES = ["runs", "p50", "p95", "longest", "calls", "tokens in", "tokens out", "cost"];

function nodeCells(all) {
  return numbers(
    all.runs,
    seconds(all.p50),
    seconds(all.p95),
    seconds(all.max),
    ...usageCells(all),
    nodeCost(all),
  );
}

function nodeCost(all) {
  if (!all.llm_calls) return "–";
  return all.priced ? price(all.cost) : all.cost ? `at least ${price(all.cost)}` : "no price";
}

// The nodes of one manifest, the slowest first.
function nodesOfManifestPane(manifest) {
  if (!manifest.nodes.some(({all}) => all.max || all.llm_calls)) return null;
  const sorted = [...manifest.nodes].sort((one, two) => (two.all.p95 ?? 0) - (one.all.p95 ?? 0));
  const rows = sorted.map(({node, all}) =>
    lightens(el("tr", {}, el("th", {scope: "row"}, node), ...nodeCells(all)), node),
  );
  return el(
    "section",
    {class: "card", "aria-label": "Latency and cost by node"},
    el("h3", {}, "Latency and cost by node"),
    table("Latency and cost by node", ["node", ...NODE_TITLES], someOf(rows, 60, "node")),
  );
}
