// The graph of a manifest, drawn at the positions that `harness.draw` has computed.

const MARGIN = 16;

function branchName(edge) {
  return `${edge.source} -> ${edge.target} [${edge.label}]`;
}

// The parts of the graph that were taken: nodes, edges and branches as in a line of results.
function takenParts(coverage) {
  const edges = new Set(coverage.edges.map(([source, target]) => `${source} -> ${target}`));
  const branches = new Set(coverage.branches);
  const anywhere = coverage.branches.some((name) => name.endsWith(" -> * [goto any]"));
  return {
    node: (name) =>
      (name === "*" && anywhere) ||
      coverage.nodes.includes(name) ||
      [...edges].some((edge) => edge.startsWith(name + " -> ") || edge.endsWith(" -> " + name)),
    edge: (edge) =>
      edge.label === null ? edges.has(`${edge.source} -> ${edge.target}`) : branches.has(branchName(edge)),
  };
}

// options: taken (see above), steps: {node: [1, 4]}, wrong: {node, why}, label, coverage, onpick
function drawGraph(figure, options) {
  const {taken, steps = {}, wrong = null} = options;
  const width = figure.width + 2 * MARGIN,
    height = figure.height + 2 * MARGIN;
  const inner = svg("g", {transform: `translate(${MARGIN} ${MARGIN})`});
  for (const edge of figure.edges) inner.append(drawnEdge(edge, taken.edge(edge)));
  for (const edge of figure.edges) if (edge.text) inner.append(drawnLabel(edge, taken.edge(edge)));
  for (const node of figure.nodes)
    inner.append(
      drawnNode(
        node,
        taken.node(node.name),
        steps[node.name] || [],
        wrong && node.name === wrong.node ? wrong.why : "",
        options,
      ),
    );
  const kind = "graph" + (options.coverage ? " coverage" : "");
  return svg(
    "svg",
    {
      class: kind,
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": options.label,
    },
    inner,
  );
}

function drawnEdge(edge, taken) {
  const title = svg(
    "title",
    {},
    `${edge.source} → ${edge.target}${edge.label ? ": " + edge.label : ""}${taken ? "" : " (not taken)"}`,
  );
  return svg(
    "g",
    {class: taken ? "taken" : "untaken"},
    title,
    svg("path", {class: "line", d: edge.line}),
    svg("path", {class: "arrow", d: edge.head}),
  );
}

function rectOf({x, y, width, height}, className, rx) {
  return svg("rect", {class: className, x: x - width / 2, y: y - height / 2, width, height, rx});
}

function drawnLabel(edge, taken) {
  const box = edge.text;
  const rows = box.rows.map((row, at) =>
    svg("text", {class: "label", x: box.x, y: box.y - box.height / 2 + 12.5 + at * 13}, row),
  );
  const state = taken ? "taken" : "untaken";
  return svg("g", {class: state}, svg("title", {}, edge.label || ""), rectOf(box, "under", 4), ...rows);
}

function drawnNode(node, taken, steps, wrong, options) {
  const state = taken ? "taken" : "untaken";
  if (node.kind !== "node") {
    const ring = node.kind === "end" ? [svg("circle", {class: "ring", cx: node.x, cy: node.y, r: 9})] : [];
    return svg(
      "g",
      {class: state},
      svg("title", {}, node.kind),
      ...ring,
      svg("circle", {class: "dot", cx: node.x, cy: node.y, r: node.kind === "end" ? 5 : 8}),
    );
  }
  const middle = node.y - (13 * (node.captions.length - 1)) / 2;
  const said = [
    node.name,
    node.captions.join(", "),
    taken ? (steps.length ? "step " + steps.join(", ") : "taken") : "not taken",
    wrong,
  ];
  const group = svg(
    "g",
    {class: `node ${state}${wrong ? " wrong" : ""}`, tabindex: 0, role: "button"},
    svg("title", {}, said.filter(Boolean).join("; ")),
    rectOf(node, "box", 9),
    svg("text", {class: "name", "aria-hidden": "true", x: node.x, y: middle - 1.5}, node.text),
    ...node.captions.map((row, at) =>
      svg("text", {class: "caption", "aria-hidden": "true", x: node.x, y: middle + 13 + 13 * at}, row),
    ),
  );
  if (steps.length) group.append(stepMark(node, steps));
  if (options.onpick) {
    group.addEventListener("click", () => options.onpick(node.name));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        event.stopPropagation();
        options.onpick(node.name);
      }
    });
  }
  return lightens(group, node.name);
}

// Draws the step numbers of a node in its corner.
function stepMark(node, steps) {
  const written =
    steps.length > 4 ? `${steps.slice(0, 3).join(" ")} … ${steps[steps.length - 1]}` : steps.join(" ");
  const width = 9 + 6.5 * written.length,
    x = node.x - node.width / 2 - 6,
    y = node.y - node.height / 2 - 9;
  return svg(
    "g",
    {class: "steps", "aria-hidden": "true"},
    svg("rect", {x, y, width, height: 17, rx: 8.5}),
    svg("text", {x: x + width / 2, y: y + 12.5}, written),
  );
}

// Returns {node: [numbers of its steps]}.
function stepsOf(path) {
  const found = {};
  path.forEach((step, at) => {
    for (const node of [step].flat()) (found[node] ||= []).push(at + 1);
  });
  return found;
}

// Returns the index of the first step that differs between two paths, or null.
function firstDifference(path, other) {
  const same = (one, two) => JSON.stringify([one].flat().sort()) === JSON.stringify([two].flat().sort());
  const at = path.findIndex((step, place) => place >= other.length || !same(step, other[place]));
  return at < 0 ? (other.length > path.length ? path.length : null) : at;
}
