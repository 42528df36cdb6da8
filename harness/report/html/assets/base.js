// Elements, texts and addresses. Data of a run is only ever inserted as text nodes.

const DATA = JSON.parse(document.getElementById("data").textContent);
const ROWS = DATA.rows;
const NOT_PASSED = new Set(["failed", "error"]);
const MARKS = {passed: "✓", failed: "✗", error: "!", skipped: "–"};
const LONG = 2000;

// Replaces control characters and those that nobody sees by visible escapes, as `printable` of harness/source/display.py.
// A joiner stays between two letters or symbols that it joins, and the style of a symbol after it.
const UNSAFE =
  /(?![\t\n]|(?<=[\p{Lo}\p{M}\p{S}])[\u200c\u200d](?=[\p{Lo}\p{M}\p{S}])|(?<=[\p{S}\p{Po}\p{Pd}])[\ufe0e\ufe0f]|\ufe0f\u20e3)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

function shown(text) {
  return String(text).replace(UNSAFE, (found) => {
    const code = found.codePointAt(0).toString(16);
    return code.length > 4 ? "\\U" + code.padStart(8, "0") : "\\u" + code.padStart(4, "0");
  });
}

// Creates an element: el("a", {class: "x", onclick: f}, "text", element, …). Texts are escaped; links stay within the page.
function el(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "href" && !String(value).startsWith("#"))
      throw new Error("an address outside of the page");
    else element.setAttribute(name, value === true ? "" : shown(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(shown(child)));
  }
  return element;
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  if (value < 0.9995) return (value * 1000).toFixed(value >= 0.0095 ? 0 : 1) + " ms";
  if (value < 99.995) return value.toFixed(2) + " s";
  const whole = Math.round(value),
    minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share === 0 || share === 1) return share * 100 + " %";
  return Math.min(Math.max(share * 100, 0.1), 99.9).toFixed(1) + " %";
}

function money(value) {
  return value === 0 ? "0" : value >= 1 ? value.toFixed(2) : Number(value.toPrecision(2)).toString();
}

// Formats US dollars; null is the cost of a model without a price.
function price(value) {
  return value === null || value === undefined ? "no price" : "$" + money(value);
}

function score(value) {
  return value === null || value === undefined ? "–" : value.toFixed(3);
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function badge(verdict) {
  return el("span", {class: "badge " + verdict}, `${MARKS[verdict]} ${verdict}`);
}

// Returns a text; a long one is folded and shows the number of hidden characters.
function text(value, limit = LONG) {
  const whole = String(value);
  if (whole.length <= limit) return el("span", {}, whole);
  const span = el("span", {}, whole.slice(0, limit));
  const more = el(
    "button",
    {class: "link", type: "button"},
    `… ${(whole.length - limit).toLocaleString("en")} more characters`,
  );
  more.addEventListener("click", () => more.replaceWith(document.createTextNode(shown(whole.slice(limit)))));
  span.append(more);
  return span;
}

// Returns a JSON value as a tree that can be folded; inner nodes are created when first opened.
function json(value, key, open = true) {
  const lead = key === undefined ? [] : [el("span", {class: "key"}, key), ": "];
  const short = JSON.stringify(value);
  if (value === null || typeof value !== "object" || short.length < 70) {
    return el("div", {}, ...lead, typeof value === "string" ? text(value) : short);
  }
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  const size = Array.isArray(value) ? plural(entries.length, "item") : plural(entries.length, "key");
  const body = el("div", {class: "in"});
  const fill = () => {
    if (body.childNodes.length) return;
    body.append(...entries.slice(0, 200).map(([name, item]) => json(item, name, false)));
    if (entries.length > 200) body.append(el("div", {}, `… ${entries.length - 200} more`));
  };
  const fold = el(
    "details",
    {ontoggle: fill},
    el("summary", {}, ...lead, Array.isArray(value) ? "[…] " : "{…} ", size),
    body,
  );
  if (open) {
    fold.open = true;
    fill();
  }
  return fold;
}

// Returns a scrollable table; `texts` are the indices of columns that are not numbers.
function table(label, titles, rows, texts = [0]) {
  const heads = titles.map((title, at) =>
    el("th", {scope: "col", class: texts.includes(at) ? "" : "number"}, title),
  );
  return el(
    "div",
    {class: "scroll", tabindex: 0, role: "group", "aria-label": label + ", scrollable"},
    el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)),
  );
}

function numbers(...values) {
  return values.map((value) => el("td", {class: "number"}, value));
}

// Returns the first elements, and a button that shows the others.
function someOf(made, most, noun) {
  if (made.length <= most) return made;
  const more = el(
    "button",
    {class: "link", type: "button"},
    `… ${plural(made.length - most, "more " + noun)}`,
  );
  const inTable = made[0].tagName === "TR",
    holder = inTable ? el("tr", {}, el("td", {colspan: 20}, more)) : more;
  more.addEventListener("click", () => holder.replaceWith(...made.slice(most)));
  return [...made.slice(0, most), holder];
}

function stored(id) {
  const found = document.getElementById(id);
  return found && JSON.parse(found.textContent);
}

// Every view has an address: #view or #view=what&more=…
function parse(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, "").replace(/\+/g, "%2B"));
  const [view, what] = parts.entries().next().value || [DATA.score ? "variants" : "scenarios", ""];
  return {view, what, parts};
}

function address(view, what, more = {}) {
  const pairs = [[view, what], ...Object.entries(more)].filter(
    ([, value], at) => at === 0 || (value !== "" && value !== null && value !== undefined),
  );
  return (
    "#" +
    pairs
      .map(([name, value]) =>
        value === ""
          ? name
          : `${name}=${encodeURIComponent(String(value).toWellFormed ? String(value).toWellFormed() : value)}`,
      )
      .join("&")
  );
}

function scenarioAddress(row, more = {}) {
  return address("scenario", row.id, {variant: row.variant, ...more});
}

function heading(row) {
  return row.name + (row.variant ? ` [${row.variant}]` : "");
}

// Elements that show a node have data-node; pointing at one highlights the others.
function light(name) {
  for (const other of document.querySelectorAll(".lit")) other.classList.remove("lit");
  if (name === null) return;
  for (const other of document.querySelectorAll("[data-node]"))
    if (other.dataset.node === name) other.classList.add("lit");
}

function lightens(element, name) {
  element.setAttribute("data-node", name);
  element.addEventListener("mouseenter", () => light(name));
  element.addEventListener("mouseleave", () => light(null));
  element.addEventListener("focusin", () => light(name));
  element.addEventListener("focusout", () => light(null));
  return element;
}
