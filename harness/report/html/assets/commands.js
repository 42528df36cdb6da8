// Shell commands, each with a button that copies it.

function copyable(command) {
  const code = el("code", {}, command);
  return el("p", {class: "rerun"}, code, copyButton(code));
}

function copyButton(code) {
  const button = el("button", {type: "button"}, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
  });
  return button;
}

// Returns the command that prints the trace of a run; null if it has none.
function traceCommand(found) {
  return found.tell ? copyable(found.tell + DATA.report) : null;
}

// Returns the command that writes a run as a scenario; null if it has no trace.
function newCommand(found) {
  return found.trace ? copyable(`harness new --from ${DATA.folder}/${found.trace}`) : null;
}

// The same for a run whose details are not in the page.
function traceOf(row, run) {
  const repeat = run[1] ? ` --repeat ${run[1]}` : "";
  return `harness trace ${quoted(row.id)}${repeat} --variant ${quoted(row.variant)}${DATA.report}`;
}

function quoted(argument) {
  return `'${argument.replaceAll("'", "'\"'\"'")}'`;
}

// Add buttons to the commands that the page has without its script.
for (const code of document.querySelectorAll("#causes .rerun code")) code.after(" ", copyButton(code));
