// The page of a scenario: checks, graph and path, conversation, nodes, state and output.

function scenarioView(row, parts) {
  const wanted = Number(parts.get("run"));
  const run =
    row.runs.find((each) => each[1] === wanted && parts.has("run")) ||
    row.runs.find((each) => NOT_PASSED.has(each[2])) ||
    row.runs[0];
  const found = stored("run-" + run[0]);
  const manifest = DATA.manifests.find((each) => each.name === row.manifest);
  const head = el(
    "div",
    {class: "head"},
    badge(run[2]),
    row.change ? el("span", {class: "badge new"}, row.change) : null,
    el("h2", {}, heading(row)),
    el("b", {}, score(run[3])),
  );
  const again =
    row.runs.length > 1
      ? [
          el(
            "nav",
            {class: "meta", "aria-label": "Runs of this scenario"},
            "runs: ",
            ...row.runs.map((each) => runLink(row, each, each === run)),
          ),
        ]
      : [];
  if (!found) {
    const where = `The details of this run were left out of the page. Line ${run[0] + 1} of results.jsonl has them:`;
    return [
      head,
      ...again,
      el("p", {class: "meta"}, row.suite),
      el("p", {class: "note"}, where),
      copyable(`sed -n ${run[0] + 1}p results.jsonl`),
    ];
  }
  const conversation = el("div", {}, callsPane(found, "Loading the conversation …")),
    times = el("div", {class: "times"});
  const panes = [
    checksPane(found),
    el("div", {}, graphPane(row, found, manifest), nodesPane(row, found, manifest)),
    conversation,
  ];
  showTrace(row, run, found, conversation, times);
  return [
    head,
    ...again,
    metaLine(row, found),
    copyable(found.rerun),
    traceCommand(found),
    newCommand(found),
    ...notes(found),
    el("div", {class: "panes three"}, ...panes),
    times,
    endPane(found),
  ];
}

// Shows the conversation and the waterfall once the trace is loaded, or what is known without it.
async function showTrace(row, run, found, conversation, times) {
  let events = null,
    wrong = "";
  try {
    events = await readTrace(run, found, row.id);
  } catch (error) {
    wrong = `The trace cannot be read: ${error.message}.`;
  }
  if (events) {
    conversation.replaceChildren(conversationPane(events));
    times.replaceChildren(waterfall(events, found.latency.total) || "");
    goToDivergence(row, found);
  } else {
    const chooser = found.trace
      ? traceChooser(found, () => showTrace(row, run, found, conversation, times))
      : null;
    conversation.replaceChildren(callsPane(found, wrong || (found.trace ? "" : missingReason(found)), chooser));
  }
}

function runLink(row, run, current) {
  return el(
    "a",
    {href: scenarioAddress(row, {run: run[1]}), "aria-current": current ? "true" : null},
    `${MARKS[run[2]]} ${run[1] + 1}`,
  );
}

function metaLine(row, found) {
  const facts = [
    [found.where || row.suite, ""],
    ["manifest", el("a", {href: address("manifest", row.manifest)}, row.manifest)],
    ["dialect", row.dialect],
    ["status", found.status],
    ["latency", seconds(found.latency.total)],
    [
      "tokens",
      `${found.usage.input_tokens.toLocaleString("en")} in, ${found.usage.output_tokens.toLocaleString("en")} out`,
    ],
    found.usage.cost ? ["cost", price(found.usage.cost)] : null,
    ["seed", found.seed],
    row.tags.length ? ["tags", row.tags.join(", ")] : null,
    found.recording === null || found.recording === undefined ? null : ["recording", found.recording],
    ["digest", found.digest ? found.digest.slice(0, 12) : "–"],
    ["real time", seconds(found.wall)],
  ];
  return el(
    "p",
    {class: "meta"},
    ...facts
      .filter(Boolean)
      .map(([name, value]) =>
        value === "" ? el("span", {class: "place"}, name) : el("span", {}, name, " ", el("b", {}, value)),
      ),
  );
}

function notes(found) {
  const said = [];
  if (found.reason) said.push(el("p", {class: "note"}, text(found.reason)));
  if (found.error) said.push(errorNote(found.error));
  for (const each of found.causes || []) said.push(el("p", {class: "note"}, text(each)));
  if (found.warnings.length) {
    said.push(
      el(
        "details",
        {class: "note warn"},
        el("summary", {}, plural(found.warnings.length, "warning")),
        ...found.warnings.map((each) => el("p", {}, text(each))),
      ),
    );
  }
  return said;
}

function errorNote(error) {
  const frames = (error.traceback || []).map((frame) =>
    el(
      "div",
      {},
      el("span", {class: "place"}, `${frame.file}:${frame.line} in ${frame.function}`),
      frame.source ? el("pre", {tabindex: 0}, frame.source) : null,
    ),
  );
  return el(
    "div",
    {class: "note warn"},
    el("b", {}, error.type),
    error.code ? ` (${error.code})` : "",
    error.node ? [" in ", el("code", {}, error.node)] : null,
    el("pre", {tabindex: 0}, text(error.message || "")),
    error.where && error.where !== error.node ? el("p", {class: "place"}, error.where) : null,
    ...frames,
  );
}

function checksPane(found) {
  const failed = found.checks.filter((check) => !check.passed),
    held = found.checks.filter((check) => check.passed);
  const pane = el(
    "section",
    {class: "card", "aria-label": "Checks"},
    el("h3", {}, `Checks: ${found.checks.length - failed.length} of ${found.checks.length} hold`),
  );
  pane.append(...failed.map(failedCheck));
  if (held.length) {
    const list = el(
      "details",
      {class: "check"},
      el(
        "summary",
        {},
        `✓ ${plural(held.length, "check")} ${held.length === 1 ? "holds" : "hold"}: ${held
          .slice(0, 6)
          .map((check) => check.name)
          .join(", ")}${held.length > 6 ? ", …" : ""}`,
      ),
    );
    list.append(
      ...held.map((check) =>
        el(
          "div",
          {class: "check"},
          "✓ ",
          el("b", {}, check.name),
          check.where ? [" ", el("span", {class: "place"}, check.where)] : null,
          el(
            "div",
            {class: "json"},
            json(check.expected, "expected", false),
            "actual" in check ? json(check.actual, "actual", false) : null,
          ),
        ),
      ),
    );
    list.open = !failed.length && held.length <= 8;
    pane.append(list);
  }
  return pane;
}

function failedCheck(check) {
  const part = check.score > 0 ? ` score ${score(check.score)}` : "";
  const parts = [
    el("span", {class: "badge failed"}, "✗"),
    " ",
    el("b", {}, check.name),
    part,
    check.where ? [" ", el("span", {class: "place"}, check.where)] : null,
    el("pre", {tabindex: 0}, text(check.message)),
  ];
  if (check.diff && check.diff.length) {
    const kinds = {"-": "gone", "+": "there", "@": "place"};
    parts.push(
      el(
        "details",
        {open: check.diff.length < 60},
        el("summary", {}, "expected (−) against actual (+)"),
        el(
          "pre",
          {class: "diff", tabindex: 0},
          ...check.diff.map((line) => el("span", {class: kinds[line[0]] || ""}, line)),
        ),
      ),
    );
  }
  return el("div", {class: "check"}, ...parts);
}

// Returns where the run diverged from the expected path or that of the baseline, {at, from, other}; or null.
function divergence(row, found) {
  const check = found.checks.find(
    (each) => !each.passed && each.name === "path" && Array.isArray(each.expected),
  );
  if (check)
    return {
      at: firstDifference(found.path, check.expected),
      from: "the expected path",
      other: check.expected,
    };
  if (row.before && row.before.path)
    return {
      at: firstDifference(found.path, row.before.path),
      from: "the path of the baseline",
      other: row.before.path,
    };
  return null;
}

// Returns the node to look at first and why, {node, why}; or null.
function wrongNode(found, away) {
  if (away && away.at !== null && away.at < found.path.length)
    return {node: [found.path[away.at]].flat()[0], why: `here it left ${away.from}`};
  const failed = NOT_PASSED.has(found.verdict) && found.error && found.error.node;
  return failed ? {node: failed.split("/")[0], why: "it failed here"} : null;
}

function graphPane(row, found, manifest) {
  const steps = stepsOf(found.path),
    away = divergence(row, found);
  const wrong = wrongNode(found, away);
  const pane = el(
    "section",
    {class: "card", "aria-label": "Graph"},
    el("h3", {}, "Graph and path"),
    pathLine(found.path, away),
  );
  if (away && away.at !== null)
    pane.append(
      el(
        "p",
        {},
        `Step ${away.at + 1} differs from ${away.from}, which has `,
        el("b", {}, away.other.length > away.at ? [away.other[away.at]].flat().join(" | ") : "the end"),
        ".",
      ),
    );
  if (manifest && manifest.figure) {
    pane.append(
      el(
        "div",
        {class: "pane-scroll", tabindex: 0, role: "group", "aria-label": "Graph, scrollable"},
        drawGraph(manifest.figure, {
          taken: takenParts(found.coverage),
          steps,
          wrong,
          label: `Graph of ${row.manifest} with the path taken`,
          onpick: pick,
        }),
      ),
    );
  } else {
    pane.append(
      el(
        "p",
        {class: "empty"},
        manifest
          ? "The graph is too large to be drawn; harness show lists it."
          : "The manifest could not be loaded: there is no graph.",
      ),
    );
  }
  return pane;
}

function pathLine(path, away) {
  if (!path.length) return el("p", {class: "empty"}, "No node ran.");
  const shownSteps = path.slice(0, 60);
  const list = el(
    "p",
    {class: "path"},
    ...shownSteps.flatMap((step, at) => [
      at ? " → " : "",
      ...[step].flat().flatMap((node, place) => [
        place ? " | " : "",
        lightens(
          el(
            "button",
            {
              class: away && away.at === at ? "link badge failed" : "link",
              type: "button",
              onclick: () => pick(node),
            },
            node,
          ),
          node,
        ),
      ]),
    ]),
  );
  if (path.length > 60) list.append(` → … ${path.length - 60} more steps`);
  return list;
}

// Goes to the next visit of a node in the conversation.
function pick(name) {
  const items = [...document.querySelectorAll(".story > .event")],
    at = items.findIndex((item) => item.classList.contains("current"));
  const starts = (item) => item.classList.contains("node_start") && item.dataset.node === name;
  goTo(items.slice(at + 1).find(starts) || items.find(starts));
  light(name);
}

// Makes an event of the conversation the current one, and highlights its node.
function goTo(item, focus = false) {
  if (!item) return;
  for (const other of document.querySelectorAll(".story > .current")) {
    other.classList.remove("current");
    other.removeAttribute("aria-current");
  }
  item.classList.add("current");
  item.setAttribute("aria-current", "step");
  const holder = item.closest(".pane-scroll");
  holder.scrollTop = item.offsetTop - holder.offsetTop - 8;
  if (focus) item.focus({preventScroll: true});
  light(item.dataset.node || null);
}

function stepEvent(by) {
  const items = [...document.querySelectorAll(".story > .event")],
    at = items.findIndex((item) => item.classList.contains("current"));
  goTo(items[at < 0 ? 0 : Math.min(Math.max(at + by, 0), items.length - 1)]);
}

function conversationPane(events) {
  const button = (title, by) => el("button", {type: "button", onclick: () => stepEvent(by)}, title);
  return el(
    "section",
    {class: "card", "aria-label": "Conversation"},
    el("div", {class: "head"}, el("h3", {}, "Conversation"), button("‹ back", -1), button("step ›", 1)),
    el(
      "div",
      {class: "pane-scroll", tabindex: 0, role: "group", "aria-label": "Conversation, scrollable"},
      conversation(events),
    ),
  );
}

// Goes to the step where the path diverged, or else to the node that failed.
function goToDivergence(row, found) {
  const away = divergence(row, found);
  const failed = document.querySelector(".story > .node_error");
  if (away && away.at !== null) {
    const starts = [...document.querySelectorAll(".story > .node_start")].filter(
      (item) => !item.dataset.inner,
    );
    const before = found.path.slice(0, away.at).flat().length;
    goTo(starts[Math.min(before, starts.length - 1)]);
  } else if (failed) {
    goTo(failed);
  }
  light(null);
}

function missingReason(found) {
  if (found.status === "skipped" && !found.calls.length) return "It was skipped.";
  if (found.status === "invalid") return "It did not start.";
  return "The conversation is not shown: no trace was kept.";
}

function callsPane(found, note, chooser = null) {
  const pane = el(
    "section",
    {class: "card calls", "aria-label": "Calls"},
    el("h3", {}, `Calls: ${found.calls.length}`),
    note ? el("p", {class: "why"}, note) : null,
    chooser,
  );
  const list = el("div", {
    class: "pane-scroll",
    tabindex: 0,
    role: "group",
    "aria-label": "Calls, scrollable",
  });
  list.append(
    ...someOf(
      found.calls.map((call) =>
        lightens(
          el(
            "div",
            {class: "check"},
            el("span", {class: call.ok ? "badge" : "badge failed"}, call.ok ? call.kind : `✗ ${call.kind}`),
            " ",
            el("b", {}, call.name),
            call.node && call.node !== call.name ? [" in ", el("code", {}, call.node)] : null,
            " ",
            el("small", {}, seconds(call.latency)),
            call.reason ? el("pre", {tabindex: 0}, (call.refused ? "refused: " : "") + call.reason) : null,
            call.args && Object.keys(call.args).length
              ? el("div", {class: "json"}, json(call.args, undefined, false))
              : null,
          ),
          call.node,
        ),
      ),
      300,
      "call",
    ),
  );
  if (!found.calls.length) list.append(el("p", {class: "empty"}, "It asked nobody."));
  pane.append(list);
  return pane;
}

// The nodes of a run in the order of their first visit, with their place in the manifest, latency, tokens and cost.
function nodesPane(row, found, manifest) {
  const visited = [...new Set(found.path.flat())],
    others = [...Object.keys(found.latency.nodes), ...Object.keys(found.usage.by_node || {})];
  const names = [...new Set([...visited, ...others])];
  if (!names.length) return null;
  const steps = stepsOf(found.path),
    asked = found.usage.by_node || {};
  const priced = Object.values(asked).some((usage) => usage.cost !== 0);
  const rows = names.map((name) => {
    const usage = asked[name],
      time = found.latency.nodes[name];
    const cells = [
      (steps[name] || []).join(", "),
      time === undefined ? "–" : seconds(time),
      usage ? (usage.input_tokens + usage.output_tokens).toLocaleString("en") : "–",
    ];
    if (priced) cells.push(usage ? price(usage.cost) : "–");
    const place = (manifest && manifest.lines[name]) || "",
      own = place.startsWith(row.manifest + ":");
    const start = el("button", {class: "link", type: "button", onclick: () => pick(name)}, name);
    return lightens(
      el(
        "tr",
        {},
        el(
          "th",
          {scope: "row"},
          start,
          place
            ? el("small", {class: "place below"}, own ? "line " + place.slice(row.manifest.length + 1) : place)
            : null,
        ),
        ...cells.map((cell) => el("td", {class: "number"}, cell)),
      ),
      name,
    );
  });
  const titles = ["node", "steps", "latency", "tokens", ...(priced ? ["cost"] : [])];
  return el(
    "section",
    {class: "card", "aria-label": "Nodes"},
    el("h3", {}, "Nodes of this run"),
    table("Nodes", titles, rows),
  );
}

function endPane(found) {
  const parts = [];
  if (found.output !== null)
    parts.push(el("h3", {}, "Output"), el("div", {class: "json"}, json(found.output)));
  if (found.interrupts.length)
    parts.push(el("h3", {}, `Paused with`), el("div", {class: "json"}, json(found.interrupts)));
  if (found.state !== null)
    parts.push(el("h3", {}, "State at the end"), el("div", {class: "json"}, json(found.state)));
  return parts.length ? el("section", {class: "card", "aria-label": "State and output"}, ...parts) : null;
}
