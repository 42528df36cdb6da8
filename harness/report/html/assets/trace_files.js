// Traces that are not in the page. The reader chooses files or their folder; the browser reads them, and sends nothing.

const MOST_BYTES = 100_000_000;

// Chosen files by name, such as "17.jsonl.gz", kept until the page is closed.
const chosenFiles = new Map();

function fileName(found) {
  return found.trace.split("/").pop();
}

// Returns the text of the chosen trace of a run, or null. Throws if it belongs to another run.
async function chosenTrace(found, id) {
  const file = chosenFiles.get(fileName(found));
  if (!file) return null;
  if (file.size > MOST_BYTES)
    throw new Error(`${file.name} has ${file.size.toLocaleString("en")} bytes, more than a page can show`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const lines = packed ? await unpacked(bytes) : new TextDecoder().decode(bytes);
  const head = headOf(lines);
  if (head === null) throw new Error(`${file.name} is not a trace`);
  if (head.id !== id || head.digest !== found.digest)
    throw new Error(
      `${file.name} is the trace of another run (${head.id}, digest ${String(head.digest).slice(0, 12)})`,
    );
  return lines;
}

function headOf(lines) {
  try {
    const head = JSON.parse(lines.slice(0, lines.indexOf("\n")));
    return head.format === "harness-trace/1" ? head : null;
  } catch {
    return null;
  }
}

// Explains how to open a conversation that is not in the page; `again` shows it once its file was chosen.
function traceChooser(found, again) {
  const choose = (event) => {
    for (const file of event.target.files) chosenFiles.set(file.name, file);
    if (chosenFiles.has(fileName(found))) again();
    else
      missing.textContent = `${fileName(found)} is not among the ${plural(event.target.files.length, "file")} that you chose.`;
  };
  const missing = el("p", {role: "status"});
  const folder = el("input", {type: "file", webkitdirectory: true, id: "trace-folder", onchange: choose});
  const files = el("input", {
    type: "file",
    multiple: true,
    accept: ".gz,.jsonl",
    id: "trace-files",
    onchange: choose,
  });
  return el(
    "div",
    {class: "note chooser"},
    el(
      "p",
      {},
      "The conversation is in ",
      el("code", {}, found.trace),
      " beside this page. A page from disk reads a file only if you choose it; nothing is sent.",
    ),
    el("p", {}, el("label", {for: "trace-folder"}, "Its folder traces/ (opens all of them): "), folder),
    el("p", {}, el("label", {for: "trace-files"}, `Or the file ${fileName(found)}: `), files),
    missing,
    el("p", {}, "Or print it:"),
    traceCommand(found),
  );
}
