// Manifests: how much of each graph the scenarios went through, and what none of them did.

const PARTS = ["nodes", "edges", "branches"];

function bar(share, kind = "") {
  const drawn = svg("svg", {width: 160, height: 11, "aria-hidden": "true", viewBox: "0 0 160 11"}, svg("rect", {width: Math.max(1, 160 * share), height: 11, rx: 2}));
  drawn.setAttribute("class", "histogram " + kind);
  drawn.style.maxWidth = "10rem";
  return drawn;
}

function partMark(found) {
  const share = found.all ? found.taken / found.all : 1;
  return [`${found.taken} of ${found.all}`, el("span", {class: "part", "aria-hidden": "true"}, svg("svg", {width: "100%", height: 10, viewBox: "0 0 100 10", preserveAspectRatio: "none"}, svg("rect", {width: 100 * share, height: 10})))];
}

function manifestsView() {
  const known = DATA.manifests;
  if (!known.length) return [el("p", {class: "empty"}, "No manifest was loaded.")];
  const rows = known.map((each) => el("tr", {}, el("th", {scope: "row"}, el("a", {href: address("manifest", each.name)}, each.name)), el("td", {class: "word"}, each.dialect), el("td", {class: "number"}, ROWS.filter((row) => row.manifest === each.name).length),
    ...PARTS.map((part) => el("td", {class: "number"}, ...partMark(each.coverage[part]))), el("td", {class: "number"}, each.coverage.branches.missing.length || "–")));
  const head = ["manifest", "dialect", "scenarios", ...PARTS, "branches not taken"].map((name, at) => el("th", {scope: "col", class: at > 1 ? "number" : ""}, name));
  return [el("h2", {}, "Manifests"), el("p", {class: "why"}, "How much of each graph the scenarios went through."), el("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Manifests, scrollable"}, el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)))];
}

function arrows(name) {
  return name.replaceAll("__start__", "(start)").replaceAll("__end__", "(end)").replaceAll(" -> ", " → ");
}

function manifestView(manifest) {
  const scenarios = ROWS.filter((row) => row.manifest === manifest.name);
  const head = [el("div", {class: "head"}, el("h2", {}, manifest.name)), el("p", {class: "meta"}, el("span", {}, "dialect ", el("b", {}, manifest.dialect)), el("span", {}, "scenarios ", el("a", {href: address("scenarios", "", {manifest: manifest.name})}, scenarios.length)),
    ...PARTS.map((part) => el("span", {}, part + " ", el("b", {}, ...partMark(manifest.coverage[part])))))];
  return [...head, el("div", {class: "panes"}, coveragePane(manifest), el("div", {}, missingPane(manifest), secondsPane(manifest)))];
}

function coveragePane(manifest) {
  const coverage = {nodes: Object.keys(manifest.taken.nodes), edges: Object.keys(manifest.taken.edges).map((name) => name.split(" -> ")), branches: Object.keys(manifest.taken.branches)};
  const pane = el("section", {class: "card", "aria-label": "Graph with coverage"}, el("h3", {}, "What the scenarios went through"));
  if (!manifest.figure) { pane.append(el("p", {class: "empty"}, "The graph is too large to be drawn; harness show lists it.")); return pane; }
  const graph = drawGraph(manifest.figure, {taken: takenParts(coverage), coverage: true, label: `Graph of ${manifest.name}, coverage`});
  pane.append(el("div", {class: "pane-scroll", tabindex: 0, role: "group", "aria-label": "Graph, scrollable"}, graph), el("ul", {class: "legend"}, el("li", {}, "solid: taken"), el("li", {}, "dashed, orange: no scenario took it")));
  return pane;
}

// What no scenario took; an edge only where none of its branches says the same.
function missingPane(manifest) {
  const [nodes, edges, branches] = PARTS.map((part) => manifest.coverage[part].missing);
  const plain = edges.filter(([source, target]) => !branches.some((branch) => branch.startsWith(`${source} -> ${target} [`)));
  const rows = [...nodes.map((name) => ["node", name, name]), ...plain.map((edge) => ["edge", edge.join(" -> "), edge[0]]), ...branches.map((name) => ["branch", name, name.split(" -> ")[0]])];
  const pane = el("section", {class: "card", "aria-label": "Not taken"}, el("h3", {}, rows.length ? "No scenario took these" : "Every node, edge and branch was taken"));
  const shownRows = rows.slice(0, 300).map(([kind, name, node]) => el("tr", {}, el("td", {class: "kind"}, kind), el("td", {}, arrows(name)), el("td", {class: "place"}, manifest.lines[name] || manifest.lines[node] || "")));
  if (rows.length) pane.append(el("table", {}, el("thead", {}, el("tr", {}, ...["part", "what", "where"].map((each) => el("th", {scope: "col"}, each)))), el("tbody", {}, ...shownRows)));
  if (rows.length > 300) pane.append(el("p", {}, `… ${rows.length - 300} more`));
  return pane;
}

function secondsPane(manifest) {
  const most = Math.max(...manifest.seconds.map((each) => each.p95), 0);
  if (!most) return null;
  const rows = manifest.seconds.slice(0, 60).map((each) => lightens(el("tr", {}, el("th", {scope: "row"}, each.node), el("td", {class: "number"}, each.runs), el("td", {class: "number"}, seconds(each.p50)), el("td", {class: "number"}, seconds(each.p95)), el("td", {class: "number"}, seconds(each.max)), el("td", {}, bar(each.p95 / most))), each.node));
  const names = ["node", "runs", "p50", "p95", "longest", "p95"];
  return el("section", {class: "card", "aria-label": "Latency by node"}, el("h3", {}, "Latency by node"), el("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Latency by node, scrollable"}, el("table", {}, el("thead", {}, el("tr", {}, ...names.map((name, at) => el("th", {scope: "col", class: at && at < 5 ? "number" : ""}, name)))), el("tbody", {}, ...rows))));
}
