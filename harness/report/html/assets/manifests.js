// Manifests: their coverage by the scenarios, and the parts that no scenario took.

const PARTS = ["nodes", "edges", "branches"];

function partMark(found) {
  if (!found.all) return ["none"];
  const share = found.taken / found.all;
  return [
    `${found.taken} of ${found.all}`,
    el(
      "span",
      {class: "part", "aria-hidden": "true"},
      svg(
        "svg",
        {width: "100%", height: 10, viewBox: "0 0 100 10", preserveAspectRatio: "none"},
        svg("rect", {width: 100 * share, height: 10}),
      ),
    ),
  ];
}

function manifestsView() {
  const missing = (manifest) =>
    ["branches", "edges", "nodes"].map((part) => -manifest.coverage[part].missing.length);
  const known = [...DATA.manifests].sort((one, two) => compared(missing(one), missing(two)));
  if (!known.length) return [el("p", {class: "empty"}, "No manifest was loaded.")];
  const rows = known.map((each) =>
    el(
      "tr",
      {},
      el("th", {scope: "row"}, el("a", {href: address("manifest", each.name)}, each.name)),
      el("td", {class: "word"}, each.dialect),
      el("td", {class: "number"}, ROWS.filter((row) => row.manifest === each.name).length),
      ...PARTS.map((part) => el("td", {class: "number"}, ...partMark(each.coverage[part]))),
      el("td", {class: "number"}, each.coverage.branches.missing.length || "–"),
    ),
  );
  return [
    el("h2", {}, "Manifests"),
    el(
      "p",
      {class: "why"},
      "Coverage of each graph by the scenarios. Graphs with the most branches not taken come first.",
    ),
    table("Manifests", ["manifest", "dialect", "scenarios", ...PARTS, "branches not taken"], rows, [0, 1]),
  ];
}

function arrows(name) {
  return name.replaceAll("__start__", "(start)").replaceAll("__end__", "(end)").replaceAll(" -> ", " → ");
}

function manifestView(manifest) {
  const scenarios = ROWS.filter((row) => row.manifest === manifest.name);
  const head = [
    el("div", {class: "head"}, el("h2", {}, manifest.name)),
    el(
      "p",
      {class: "meta"},
      el("span", {}, "dialect ", el("b", {}, manifest.dialect)),
      el(
        "span",
        {},
        "scenarios ",
        el("a", {href: address("scenarios", "", {manifest: manifest.name})}, scenarios.length),
      ),
      ...PARTS.map((part) => el("span", {}, part + " ", el("b", {}, ...partMark(manifest.coverage[part])))),
    ),
  ];
  return [
    ...head,
    el(
      "div",
      {class: "panes"},
      coveragePane(manifest),
      el("div", {}, missingPane(manifest), dynamicPane(manifest), nodesOfManifestPane(manifest)),
    ),
  ];
}

function coveragePane(manifest) {
  const coverage = {
    nodes: Object.keys(manifest.taken.nodes),
    edges: Object.keys(manifest.taken.edges).map((name) => name.split(" -> ")),
    branches: Object.keys(manifest.taken.branches),
  };
  const pane = el(
    "section",
    {class: "card", "aria-label": "Graph with coverage"},
    el("h3", {}, "Coverage"),
  );
  if (!manifest.figure) {
    pane.append(el("p", {class: "empty"}, "The graph is too large to be drawn; harness show lists it."));
    return pane;
  }
  const graph = drawGraph(manifest.figure, {
    taken: takenParts(coverage),
    coverage: true,
    label: `Graph of ${manifest.name}, coverage`,
  });
  pane.append(
    el("div", {class: "pane-scroll", tabindex: 0, role: "group", "aria-label": "Graph, scrollable"}, graph),
    el(
      "ul",
      {class: "legend"},
      el("li", {}, "solid: taken"),
      el("li", {}, "dashed, orange: no scenario took it"),
    ),
  );
  return pane;
}

// The parts of a kind, "missing" or "dynamic". An edge with such branches is listed by its branches only.
function partRows(manifest, which) {
  const [nodes, edges, branches] = PARTS.map((part) => manifest.coverage[part][which]);
  const plain = edges.filter(
    ([source, target]) => !branches.some((branch) => branch.startsWith(`${source} -> ${target} [`)),
  );
  return [
    ...nodes.map((name) => ["node", name, name]),
    ...plain.map((edge) => ["edge", edge.join(" -> "), edge[0]]),
    ...branches.map((name) => ["branch", name, name.split(" -> ")[0]]),
  ];
}

// Lists the parts that no scenario took.
function missingPane(manifest) {
  const rows = partRows(manifest, "missing");
  const title = rows.length ? "Not taken by any scenario" : "Every node, edge and branch was taken";
  return partsPane(manifest, "Not taken", title, rows);
}

// Lists the parts that the picture of the graph lacks, and that runs reached.
function dynamicPane(manifest) {
  const rows = partRows(manifest, "dynamic");
  const title = "Dynamic: reached by runs, not in the picture of the graph";
  return rows.length ? partsPane(manifest, "Dynamic", title, rows) : "";
}

function partsPane(manifest, label, title, rows) {
  const table = rows.length ? [partsTable(manifest, rows)] : [];
  return el("section", {class: "card", "aria-label": label}, el("h3", {}, title), ...table);
}

function partsTable(manifest, rows) {
  const shownRows = rows.map(([kind, name, node]) =>
    lightens(
      el(
        "tr",
        {},
        el("td", {class: "kind"}, kind),
        el("td", {}, arrows(name)),
        el("td", {class: "place"}, manifest.lines[name] || manifest.lines[node] || ""),
      ),
      node,
    ),
  );
  return el(
    "table",
    {},
    el("thead", {}, el("tr", {}, ...["part", "what", "where"].map((each) => el("th", {scope: "col"}, each)))),
    el("tbody", {}, ...someOf(shownRows, 300, "row")),
  );
}
