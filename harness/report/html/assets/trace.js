// The trace of a run as a conversation. It is embedded in the page, chosen by the reader, or fetched from beside the page.

const SHARED = "$shared";
const DATA_FIELDS = ["request", "update", "value", "values", "error", "output"];

async function readTrace(run, found, id) {
  const kept = document.getElementById("trace-" + run[0]);
  if (kept)
    return events(await unpacked(Uint8Array.from(atob(kept.textContent), (each) => each.charCodeAt(0))));
  if (!found.trace) return null;
  const chosen = await chosenTrace(found, id);
  if (chosen !== null) return events(chosen);
  if (location.protocol === "file:") return null;
  const answer = await fetch(found.trace);
  return answer.ok ? events(await unpacked(new Uint8Array(await answer.arrayBuffer()))) : null;
}

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// Parses the lines of a trace and restores shared values (harness.graph.sharing). A message is the same object in all events.
function events(lines) {
  const shared = new Map(),
    found = [];
  const whole = (value) => {
    if (Array.isArray(value))
      return value.flatMap((item) =>
        item && typeof item === "object" && Array.isArray(item[SHARED])
          ? range(...item[SHARED])
          : [whole(item)],
      );
    if (!value || typeof value !== "object") return value;
    if (typeof value[SHARED] === "number") return shared.get(value[SHARED]);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, whole(item)]));
  };
  const range = (first, last) => Array.from({length: last - first + 1}, (_, at) => shared.get(first + at));
  for (const line of lines.split("\n")) {
    if (!line) continue;
    const event = JSON.parse(line);
    if (event.event === "shared") shared.set(event.number, event.value);
    else if (event.event !== "trace") {
      for (const field of DATA_FIELDS) if (field in event) event[field] = whole(event[field]);
      found.push(event);
    }
  }
  return found;
}

// The events shown as steps of the conversation: {at: index of the event, event, parts}.
function itemsOf(found) {
  const answers = new Map(
    found.filter((event) => event.event === "answer").map((event) => [event.call, event]),
  );
  const seen = new Set();
  return found
    .map((event, at) => ({at, event, parts: DESCRIBED[event.event] && DESCRIBED[event.event](event, answers, seen)}))
    .filter(({parts}) => parts);
}

const MOST_ITEMS = 1500;

function elementsOf(items) {
  const made = items.slice(0, MOST_ITEMS).map(({event, parts}) => described(event, parts));
  const more = items.length - MOST_ITEMS;
  return more > 0
    ? [...made, el("li", {}, `… ${plural(more, "more event")}: harness trace prints them all`)]
    : made;
}

// The conversation pane: a list of events, one of which is the current step.
function conversation(found) {
  return el("ol", {class: "story"}, ...elementsOf(itemsOf(found)));
}

function described(event, parts) {
  const item = el(
    "li",
    {class: "event " + event.event, tabindex: -1},
    el("span", {class: "at"}, seconds(event.at)),
    el("div", {class: "what"}, ...parts),
  );
  const node = event.node || (event.event === "route" ? event.source : null);
  if (event.graph) item.dataset.inner = event.graph;
  if (event.event === "route") item.dataset.edge = `${event.source} -> ${event.target}`;
  return node ? lightens(item, node.split("/").pop()) : item;
}

const DESCRIBED = {
  input: (event) => [el("b", {}, "input"), body(event.value)],
  resume: (event) => [el("b", {}, "resumed with"), body(event.value)],
  node_start: (event) => [el("b", {class: "node"}, event.graph + event.node), el("small", {}, " starts")],
  node_resume: (event) => [el("b", {class: "node"}, event.graph + event.node), el("small", {}, " goes on")],
  node_pause: (event) => [
    el("b", {class: "node"}, event.graph + event.node),
    el("small", {}, " pauses and asks"),
    ...event.values.filter((value) => value !== null).map(body),
  ],
  node_end: (event) =>
    Object.keys(event.update || {}).length
      ? [folded(`${event.graph}${event.node} wrote ${Object.keys(event.update).join(", ")}`, event.update)]
      : null,
  node_error: (event) => [
    el("span", {class: "badge failed"}, "✗ failed"),
    " ",
    el("b", {class: "node"}, event.graph + event.node),
    el("pre", {tabindex: 0}, text(`${event.type}: ${event.message}`)),
  ],
  pause: (event) => [el("b", {}, `stops ${event.when} ${event.nodes.join(", ")}`)],
  join_timeout: (event) => [
    el("span", {class: "badge failed"}, "✗ too late"),
    " ",
    el("b", {class: "node"}, event.node),
    el("pre", {tabindex: 0}, text(event.message)),
  ],
  route: (event) => [
    el("span", {class: "arrow"}, `${ends(event.source)} → ${ends(event.target)}`),
    event.condition === null
      ? null
      : el("small", {}, " because ", el("code", {}, text(event.condition, 300))),
  ],
  reroute: () => [el("small", {}, "the previous routes are replaced")],
  because: (event) => [
    el("b", {class: "node"}, event.graph + event.node),
    el("small", {}, ` (${event.then}) because `),
    text(event.message),
  ],
  warning: (event) => [el("span", {class: "badge error"}, "! warning"), " ", text(event.text)],
  call: (event, answers, seen) => [...asked(event, seen), ...answered(event, answers.get(event.call))],
  end: (event) => [
    el("b", {}, `ended: ${event.status}`),
    event.error
      ? el(
          "pre",
          {tabindex: 0},
          text(typeof event.error === "string" ? event.error : JSON.stringify(event.error, null, 1)),
        )
      : null,
  ],
};

function ends(name) {
  return {__start__: "(start)", __end__: "(end)"}[name] || name;
}

function body(value) {
  return typeof value === "string"
    ? el("pre", {tabindex: 0}, text(value))
    : el("div", {class: "json"}, json(value));
}

function folded(title, value) {
  const inside = el("div", {class: "json"});
  return el(
    "details",
    {
      ontoggle: () => {
        if (!inside.childNodes.length) inside.append(json(value));
      },
    },
    el("summary", {}, title),
    inside,
  );
}

// Shows a request; of the messages to a model only those that were not sent before.
function asked(event, seen) {
  const {messages, args, ...rest} = event.request || {};
  if (!messages)
    return [
      el("span", {class: "badge"}, event.kind),
      " ",
      el("b", {}, event.name),
      args && Object.keys(args).length
        ? el("div", {class: "json"}, json(args, undefined, JSON.stringify(args).length < 400))
        : null,
    ];
  const key = (message) => JSON.stringify(message),
    fresh = messages.filter((message) => !seen.has(key(message)));
  for (const message of messages) seen.add(key(message));
  const old = messages.length - fresh.length,
    tools =
      rest.tools && rest.tools.length
        ? ` with ${rest.tools.map((tool) => (typeof tool === "string" ? tool : tool.name)).join(", ")}`
        : "";
  const parts = [el("span", {class: "badge"}, "model"), " ", el("b", {}, event.name), el("small", {}, tools)];
  if (old)
    parts.push(
      folded(
        `${plural(old, "message")} as before`,
        messages.filter((message) => !fresh.includes(message)),
      ),
    );
  return [...parts, ...fresh.map(message)];
}

const SPEAKERS = {human: "user", ai: "assistant"};

function message(found) {
  const speaker = SPEAKERS[found.type || found.role] || found.type || found.role || "message";
  const content = typeof found.content === "string" ? found.content : null;
  return el(
    "div",
    {class: "message " + speaker},
    el("span", {class: "who"}, speaker),
    found.name ? el("small", {}, ` ${found.name}`) : null,
    content === null
      ? el("div", {class: "json"}, json(found.content ?? found))
      : content === ""
        ? null
        : el("pre", {tabindex: 0}, text(content)),
    ...(found.tool_calls || []).map(toolCall),
  );
}

function toolCall(call) {
  return el(
    "div",
    {class: "wanted"},
    "calls ",
    el("b", {}, call.name),
    el(
      "div",
      {class: "json"},
      json(call.args || {}, undefined, JSON.stringify(call.args || {}).length < 400),
    ),
  );
}

function answered(event, answer) {
  if (!answer) return [el("p", {class: "empty"}, "no answer: the run ended before")];
  const took = el(
    "small",
    {},
    ` ${seconds(answer.at)}, took ${seconds(answer.latency)}${usage(answer.usage)}`,
  );
  if (!answer.ok) {
    const why = answer.error
      ? `${answer.error.type}: ${answer.error.message}`
      : JSON.stringify(answer.value, null, 1);
    return [
      el(
        "div",
        {class: "message reply"},
        el("span", {class: "badge failed"}, answer.refused ? "✗ refused" : "✗ failed"),
        took,
        el("pre", {tabindex: 0}, text(why)),
      ),
    ];
  }
  const value = answer.value,
    said = value && typeof value === "object" && event.kind === "llm" ? value : null;
  const parts = said
    ? [said.text ? el("pre", {tabindex: 0}, text(said.text)) : null, ...(said.tool_calls || []).map(toolCall)]
    : [body(value)];
  return [
    el(
      "div",
      {class: "message reply"},
      el("span", {class: "who"}, event.kind === "llm" ? "◀ reply" : "◀ answer"),
      took,
      ...parts,
    ),
  ];
}

function usage(counts) {
  const {input_tokens: input = 0, output_tokens: output = 0} = counts || {};
  return input || output ? `, ${input}/${output} tokens` : "";
}

// The spans of node visits and effects.
function spans(found) {
  const open = new Map(),
    made = [];
  const last = found.length ? found[found.length - 1].at : 0;
  for (const event of found) {
    const key = (event.graph ?? "") + event.node;
    if (event.event === "node_start" || event.event === "node_resume") {
      const span = {
        kind: "node",
        name: key,
        node: event.node,
        from: event.at,
        to: null,
        depth: (event.graph || "").split("/").length - 1,
      };
      made.push(span);
      open.set(key, [...(open.get(key) || []), span]);
    } else if (["node_end", "node_pause", "node_error"].includes(event.event)) {
      const span = (open.get(key) || []).shift();
      if (span) {
        span.to = event.at;
        span.state = event.event === "node_error" ? "failed" : event.event === "node_pause" ? "paused" : "";
      }
    } else if (event.event === "call") {
      made.push({
        kind: event.kind,
        name: event.name,
        node: event.node.split("/").pop(),
        from: event.at,
        to: null,
        call: event.call,
        depth: event.node.split("/").length,
      });
    } else if (event.event === "answer") {
      const span = made.find((each) => each.call === event.call);
      if (span) {
        span.to = event.at;
        span.state = event.ok ? "" : "failed";
      }
    }
  }
  for (const span of made)
    if (span.to === null) {
      span.to = last;
      span.state ||= "unfinished";
    }
  return made;
}

const MOST_SPANS = 250;

function waterfall(found, total) {
  const all = spans(found),
    whole = Math.max(total, ...all.map((span) => span.to));
  if (!all.length || !whole) return null;
  const rows = all.map((span) => {
    const box = svg(
      "svg",
      {
        class: "span " + span.kind + " " + (span.state || ""),
        viewBox: "0 0 1000 12",
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      },
      svg("rect", {
        x: Math.min(997, (1000 * span.from) / whole),
        width: Math.max(3, (1000 * (span.to - span.from)) / whole),
        y: 1,
        height: 10,
      }),
    );
    const label = el(
      "th",
      {scope: "row", class: span.kind === "node" ? "" : "inner"},
      span.kind === "node"
        ? el("button", {class: "link", type: "button", onclick: () => pick(span.node)}, span.name)
        : `${span.kind} ${span.name}`,
      span.state ? el("small", {}, ` ${span.state}`) : null,
    );
    label.style.paddingLeft = 0.6 + 0.9 * Math.min(span.depth, 6) + "rem";
    return lightens(
      el(
        "tr",
        {},
        label,
        el("td", {class: "number"}, seconds(span.from)),
        el("td", {class: "number"}, seconds(span.to - span.from)),
        el("td", {class: "lane"}, box),
      ),
      span.node,
    );
  });
  const head = el(
    "tr",
    {},
    ...["node, effect", "begins", "takes", `0 s to ${seconds(whole)}`].map((name, at) =>
      el("th", {scope: "col", class: at === 1 || at === 2 ? "number" : ""}, name),
    ),
  );
  return el(
    "section",
    {class: "card", "aria-label": "Waterfall"},
    el("h3", {}, "Waterfall, in virtual time"),
    el(
      "div",
      {class: "scroll", tabindex: 0, role: "group", "aria-label": "Waterfall, scrollable"},
      el(
        "table",
        {class: "waterfall"},
        el("thead", {}, head),
        el("tbody", {}, ...someOf(rows, MOST_SPANS, "row")),
      ),
    ),
  );
}
