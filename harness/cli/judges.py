"""`harness judges`: list the built-in judges of `expect.judge`, and print their prompts."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli import completion
from harness.cli.output import deliver, deliver_json
from harness.errors import FormatError, Problem
from harness.judges.library import METRICS, Prompt, library_prompt, project_prompts
from harness.source.display import did_you_mean, printable
from harness.source.document import shown_path

_OWN = """\b
To use a prompt of your own, for all scenarios of a project:
  harness judges tone > judges/tone.txt
  # judge_prompts = "judges" in [tool.harness]
or for one: judge: {metric: tone, prompt: {file: judges/tone.txt}}
"""


@click.command("judges", epilog=_OWN)
@click.argument("name", required=False, shell_complete=completion.judges)
@click.option("--library", is_flag=True, help="Ignore the project's own prompts.")
@click.option(
    "--json", "json_", is_flag=True, help="Print a JSON list of {name, high, sees, needs, file, prompt}."
)
def command(name: str | None, library: bool, json_: bool) -> None:
    """List the metrics that `judge: {metric: NAME}` may name, or print the prompt of one exactly as it is sent.

    The prompt is the system message; the user message is a JSON object with the parts of the run that the judge
    sees. Prompts of the current project (`judge_prompts` in [tool.harness]) replace the built-in ones.
    """
    from harness.settings import load_settings

    if name is not None and name not in METRICS:
        raise FormatError(Problem("unknown-metric", f"no metric '{name}'", None, did_you_mean(name, METRICS)))
    own = {} if library else project_prompts(load_settings(Path.cwd()).judge_prompts)
    prompts = {each: own.get(each) or library_prompt(each) for each in ([name] if name else METRICS)}
    if json_:
        deliver_json([_as_json(each, prompt) for each, prompt in prompts.items()], "-")
    elif name is not None:
        deliver(printable(prompts[name].text, keep_newlines=True), None)
    else:
        click.echo("\n\n".join(_listed(each, prompt) for each, prompt in prompts.items()))


def _listed(name: str, prompt: Prompt) -> str:
    metric = METRICS[name]
    optional = [part for part in metric.sees if part not in metric.needs]
    seen = ", ".join(metric.needs) + (f"; {', '.join(optional)} where there are any" if optional else "")
    lines = [name, f"    1 means: {metric.high}", f"    sees: {seen}"]
    return "\n".join([*lines, f"    prompt: {shown_path(prompt.file)}"] if prompt.file else lines)


def _as_json(name: str, prompt: Prompt) -> dict[str, object]:
    metric = METRICS[name]
    file = shown_path(prompt.file) if prompt.file else None
    described = {"name": name, "high": metric.high, "sees": metric.sees, "needs": metric.needs}
    return {**described, "file": file, "prompt": prompt.text}
