// A scenario with the baseline and with a variant: checks and prompts that differ, and both conversations side by side.

const MOST_PROMPTS = 30;
const OF_NO_INTEREST = new Set(["at", "latency", "step", "invocation", "cut", "call"]);

function pairAddress(row, more = {}) {
  return address("pair", row.id, {variant: row.variant, ...more});
}

function pairView(row, parts) {
  const before = ROWS.find((each) => each.id === row.id && each.variant === variantNames()[0]);
  if (!before) return missing("baseline of", row.id);
  const pairs = row.runs
    .map((run) => [before.runs.find((each) => each[1] === run[1]), run])
    .filter(([one]) => one);
  if (!pairs.length) return missing("common repeat of", row.id);
  const wanted = Number(parts.get("run"));
  const pair =
    (parts.has("run") && pairs.find(([, run]) => run[1] === wanted)) ||
    pairs.find(([one, other]) => one[2] !== other[2] || one[3] !== other[3]) ||
    pairs[0];
  const found = pair.map((run) => stored("run-" + run[0]));
  const sides = [before, row].map((each, at) => ({row: each, run: pair[at], found: found[at]}));
  const head = el(
    "div",
    {class: "head"},
    el("h2", {}, row.name),
    el("small", {}, row.suite),
    ...sides.flatMap(({row: each, run}, at) => [
      at ? " → " : null,
      el("a", {href: scenarioAddress(each, {run: run[1]})}, each.variant),
      badge(run[2]),
      el("b", {}, score(run[3])),
    ]),
  );
  const again =
    pairs.length > 1
      ? el(
          "nav",
          {class: "meta", "aria-label": "Runs of this scenario"},
          "runs: ",
          ...pairs.map(([one, other]) =>
            el(
              "a",
              {href: pairAddress(row, {run: other[1]}), "aria-current": other === pair[1] ? "true" : null},
              `${MARKS[one[2]]}${MARKS[other[2]]} ${other[1] + 1}`,
            ),
          ),
        )
      : null;
  const without = sides.filter((side) => !side.found);
  const lines = without.map(({row: each, run}) => `line ${run[0] + 1} (${each.variant})`).join(" and ");
  const checks = without.length
    ? el("p", {class: "note"}, `The checks were left out of the page: ${lines} of results.jsonl has them.`)
    : changedChecks(sides);
  const conversations = el("div", {class: "conversations"}, el("p", {class: "empty"}, "Loading the conversations …"));
  showPair(sides, conversations);
  return [head, again, checks, conversations];
}

// The checks with different results or scores.
function changedChecks(sides) {
  const byName = sides.map(({found}) => new Map(found.checks.map((check) => [check.name, check])));
  const names = [...new Set(byName.flatMap((checks) => [...checks.keys()]))];
  const changed = names.filter((name) => {
    const [one, other] = byName.map((checks) => checks.get(name));
    return !one || !other || one.passed !== other.passed || one.score !== other.score;
  });
  const said = (check) => {
    if (!check) return el("td", {}, "not checked");
    return el(
      "td",
      {},
      el(
        "span",
        {class: "badge " + (check.passed ? "passed" : "failed")},
        check.passed ? "✓ holds" : "✗ fails",
      ),
      check.passed ? null : el("pre", {tabindex: 0}, text(check.message || "")),
    );
  };
  const rows = changed.map((name) =>
    el("tr", {}, el("th", {scope: "row"}, name), ...byName.map((checks) => said(checks.get(name)))),
  );
  const kept = names.length - changed.length;
  return el(
    "section",
    {class: "card halves", "aria-label": "Checks that differ"},
    el("h3", {}, `Checks that differ: ${changed.length} of ${names.length}`),
    changed.length
      ? table("Checks that differ", ["check", ...sides.map(({row}) => row.variant)], rows, [0, 1, 2])
      : null,
    kept && !changed.length ? el("p", {class: "why"}, "All checks have the same result.") : null,
    ...sides
      .filter(({found}) => found.error)
      .map(({row, found}) => [
        el("p", {}, el("b", {}, row.variant), " ended with an error:"),
        errorNote(found.error),
      ])
      .flat(),
  );
}

// Shows the differences once both traces are loaded, or explains how to load them.
async function showPair(sides, holder) {
  const traces = [];
  for (const {row, run, found} of sides) {
    let read = null,
      wrong = "";
    try {
      read = await readTrace(run, found || {}, row.id);
    } catch (error) {
      wrong = `The trace of ${row.variant} cannot be read: ${error.message}.`;
    }
    if (!read) {
      holder.replaceChildren(
        el("p", {class: "note"}, wrong || `The conversation of ${row.variant} is not in this page.`),
        waysToTrace(row, run, found, () => showPair(sides, holder)),
      );
      return;
    }
    traces.push(read);
  }
  holder.replaceChildren(...[promptsPane(sides, traces), besidePane(sides, traces)].filter(Boolean));
  for (const pane of holder.querySelectorAll(".beside .pane-scroll")) {
    const apart = pane.querySelector(".apart");
    if (apart) pane.scrollTop = apart.offsetTop - pane.offsetTop - 8;
  }
}

// Explains how to open a trace that is not in the page.
function waysToTrace(row, run, found, again) {
  if (!found) return copyable(traceOf(row, run));
  return found.trace ? traceChooser(found, again) : el("p", {class: "why"}, missingReason(found));
}

function alike(one, other) {
  if (one === other) return true;
  if (!one || !other || typeof one !== "object" || typeof other !== "object") return false;
  const keys = Object.keys(one);
  return (
    Array.isArray(one) === Array.isArray(other) &&
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && alike(one[key], other[key]))
  );
}

// Returns an event without its times and counters.
function contentOf(event) {
  return Object.fromEntries(Object.entries(event).filter(([key]) => !OF_NO_INTEREST.has(key)));
}

// Returns the index of the first event in which two traces differ; null if they are equal.
function firstApart([before, after]) {
  const most = Math.max(before.length, after.length);
  for (let at = 0; at < most; at++) {
    if (!before[at] || !after[at] || !alike(contentOf(before[at]), contentOf(after[at]))) return at;
  }
  return null;
}

function besidePane(sides, traces) {
  const apart = firstApart(traces);
  if (apart === null) {
    const times = sides.map(({row, run}) => `${row.variant} ${seconds(run[4])}`);
    return el(
      "section",
      {class: "card", "aria-label": "Conversation"},
      el("h3", {}, "Both conversations are the same"),
      el("p", {class: "meta"}, `virtual latency: ${times.join(", ")}`),
      el("ol", {class: "events"}, ...elementsOf(itemsOf(traces[1]))),
    );
  }
  // An answer is shown with its call.
  const from = traces.map((trace) => {
    const event = trace[apart];
    if (!event || event.event !== "answer") return apart;
    return trace.findIndex((each) => each.event === "call" && each.call === event.call);
  });
  const start = Math.min(...from.filter((at) => at >= 0));
  const items = traces.map(itemsOf),
    before = items[0].filter(({at}) => at < start);
  const columns = sides.map(({row}, side) => {
    const rest = items[side].filter(({at}) => at >= start);
    const list = el("ol", {class: "events"}, ...elementsOf(rest));
    const first = list.firstElementChild;
    if (first) {
      first.classList.add("apart");
      first.querySelector(".what").prepend(el("span", {class: "badge new"}, "differs from here"), " ");
    } else {
      list.append(el("li", {class: "event"}, "Nothing more happened."));
    }
    return el(
      "section",
      {class: "card", "aria-label": "Conversation of " + row.variant},
      el("h3", {}, row.variant),
      el(
        "div",
        {
          class: "pane-scroll",
          tabindex: 0,
          role: "group",
          "aria-label": `Conversation of ${row.variant}, scrollable`,
        },
        list,
      ),
    );
  });
  const fold = el("ol", {class: "events"});
  return el(
    "div",
    {},
    el("h3", {}, "Conversations"),
    before.length
      ? el(
          "details",
          {class: "card", ontoggle: () => fold.childNodes.length || fold.append(...elementsOf(before))},
          el("summary", {}, `${plural(before.length, "step")} before, the same in both`),
          fold,
        )
      : null,
    el("div", {class: "panes beside"}, ...columns),
  );
}

// Compares the prompts, call by call of each node. A difference that was sent repeatedly is shown once.
function promptsPane(sides, traces) {
  const asked = traces.map((trace) => {
    const counts = new Map(),
      calls = new Map();
    for (const event of trace) {
      if (event.event !== "call" || event.kind !== "llm") continue;
      const count = (counts.get(event.node) || 0) + 1;
      counts.set(event.node, count);
      calls.set(`${event.node}\n${count}`, event);
    }
    return calls;
  });
  const known = new Set(),
    found = [];
  for (const [key, before] of asked[0]) {
    const after = asked[1].get(key);
    if (after)
      for (const each of requestDiffs(before, after))
        if (!known.has(each.key) && known.add(each.key)) found.push(each);
  }
  const cards = found.map(({node, what, before, after}) =>
    el("div", {class: "check"}, el("b", {}, node), ` ${what}`, wordDiff(before, after)),
  );
  return el(
    "section",
    {class: "card", "aria-label": "Prompts that differ"},
    el("h3", {}, `Prompts that differ: ${found.length}`),
    found.length
      ? el("p", {class: "why"}, el("del", {}, sides[0].row.variant), " ", el("ins", {}, sides[1].row.variant))
      : el("p", {class: "why"}, "Both sent the same prompts."),
    ...someOf(cards, MOST_PROMPTS, "prompt"),
  );
}

const WRITTEN = new Set(["system", "user", "developer"]);

// Returns the differences between two requests of a node: {key, node, what, before, after}.
function requestDiffs(before, after) {
  const found = [];
  const add = (what, one, other) => {
    if (one !== other)
      found.push({
        key: JSON.stringify([before.node, what, one, other]),
        node: before.node,
        what,
        before: one,
        after: other,
      });
  };
  add("model", before.name, after.name);
  const [{messages: old = [], ...rest}, {messages: now = [], ...others}] = [
    before.request || {},
    after.request || {},
  ];
  for (const name of new Set([...Object.keys(rest), ...Object.keys(others)]))
    add(name, plain(rest[name]), plain(others[name]));
  for (const role of WRITTEN) {
    const [one, other] = [old, now].map((messages) => messages.filter((each) => roleOf(each) === role));
    for (let at = 0; at < Math.max(one.length, other.length); at++)
      add(role, plain(one[at] && one[at].content), plain(other[at] && other[at].content));
  }
  return found;
}

function roleOf(found) {
  return SPEAKERS[found.type || found.role] || found.type || found.role;
}

function plain(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}
