// The difference between two texts, by words.

const MOST_COMPARED = 1_000_000;
const SAME_AROUND = 120;

// Returns the steps from one list to another: [what, items]; what is "same", "gone" or "there".
function steps(before, after) {
  let head = 0,
    tail = 0;
  const short = Math.min(before.length, after.length);
  while (head < short && before[head] === after[head]) head++;
  while (tail < short - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const one = before.slice(head, before.length - tail),
    other = after.slice(head, after.length - tail);
  const middle =
    one.length * other.length > MOST_COMPARED
      ? [
          ["gone", one],
          ["there", other],
        ]
      : aligned(one, other);
  return merged([["same", before.slice(0, head)], ...middle, ["same", before.slice(before.length - tail)]]);
}

// Returns the steps along the longest common subsequence.
function aligned(one, other) {
  const width = other.length + 1,
    lengths = new Uint16Array((one.length + 1) * width);
  for (let at = one.length - 1; at >= 0; at--)
    for (let to = other.length - 1; to >= 0; to--)
      lengths[at * width + to] =
        one[at] === other[to]
          ? lengths[(at + 1) * width + to + 1] + 1
          : Math.max(lengths[(at + 1) * width + to], lengths[at * width + to + 1]);
  const found = [];
  let at = 0,
    to = 0;
  while (at < one.length || to < other.length) {
    if (at < one.length && to < other.length && one[at] === other[to]) {
      found.push(["same", [one[at++]]]);
      to++;
    } else if (
      to >= other.length ||
      (at < one.length && lengths[(at + 1) * width + to] >= lengths[at * width + to + 1])
    ) {
      found.push(["gone", [one[at++]]]);
    } else {
      found.push(["there", [other[to++]]]);
    }
  }
  return found;
}

// Merges changes that are separated by white space only: first what is gone, then what is there.
function merged(found) {
  const blocks = [];
  for (const [what, items] of found) {
    if (!items.length) continue;
    const last = blocks.at(-1);
    if (what === "same") {
      if (last && last.same) last.same.push(...items);
      else blocks.push({same: [...items]});
      continue;
    }
    if (last && last.same && blocks.length > 1 && !last.same.join("").trim()) {
      const blanks = blocks.pop().same;
      blocks.at(-1).gone.push(...blanks);
      blocks.at(-1).there.push(...blanks);
    } else if (!last || last.same) {
      blocks.push({gone: [], there: []});
    }
    blocks.at(-1)[what].push(...items);
  }
  return blocks;
}

// Shows two texts as one: removed words struck through, added words underlined, long equal parts folded.
function wordDiff(before, after) {
  const words = (whole) => whole.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) || [];
  const blocks = steps(words(before), words(after));
  const parts = blocks.flatMap((block, at) => {
    if (!block.same)
      return [
        block.gone.length ? el("del", {}, text(block.gone.join(""))) : null,
        block.there.length ? el("ins", {}, text(block.there.join(""))) : null,
      ];
    return sameText(block.same.join(""), at === 0, at === blocks.length - 1);
  });
  return el("pre", {class: "words", tabindex: 0}, ...parts);
}

function sameText(whole, first, last) {
  const start = first ? 0 : SAME_AROUND,
    end = last ? 0 : SAME_AROUND,
    left = whole.length - start - end;
  if (left < 2 * SAME_AROUND) return [whole];
  const more = el(
    "button",
    {class: "link", type: "button"},
    `… ${left.toLocaleString("en")} characters the same …`,
  );
  more.addEventListener("click", () =>
    more.replaceWith(document.createTextNode(shown(whole.slice(start, start + left)))),
  );
  return [whole.slice(0, start), more, end ? whole.slice(-end) : ""];
}
