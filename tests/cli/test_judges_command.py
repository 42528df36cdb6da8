"""`harness judges`: the listing, and prompts exactly as they are sent."""

import json

from harness.judges.library import METRICS, library_prompt
from tests.cli.fixtures import Invoke, WriteFile

OWN = 'Is it short? {"reason": "…", "grade": 1}\n'


def test_metrics_are_listed_with_the_material_they_are_shown(invoke: Invoke) -> None:
    result = invoke("judges")
    assert (result.exit_code, result.stderr) == (0, "")
    listed = [line for line in result.stdout.splitlines() if line and not line.startswith(" ")]
    assert listed == [*METRICS]
    assert "tone\n    1 means: the output is courteous, calm and fits who is spoken to\n" in result.stdout


def test_a_prompt_is_printed_as_it_is_sent(invoke: Invoke) -> None:
    assert invoke("judges", "tone").stdout == library_prompt("tone").text


def test_a_prompt_of_the_project_replaces_the_built_in_one(invoke: Invoke, write: WriteFile) -> None:
    write("pyproject.toml", '[tool.harness]\njudge_prompts = "judges"\n')
    write("judges/tone.txt", OWN)
    assert invoke("judges", "tone").stdout == OWN
    assert "    prompt: judges/tone.txt" in invoke("judges").stdout
    assert invoke("judges", "tone", "--library").stdout == library_prompt("tone").text
    (listed,) = json.loads(invoke("judges", "tone", "--json").stdout)
    assert (listed["name"], listed["file"], listed["prompt"]) == ("tone", "judges/tone.txt", OWN)


def test_an_unknown_metric_is_refused_with_a_suggestion(invoke: Invoke) -> None:
    result = invoke("judges", "ton")
    assert result.exit_code == 2
    assert result.stderr == "error: no metric 'ton' [unknown-metric]\n    did you mean 'tone'?\n"


def test_a_missing_folder_of_prompts_is_refused(invoke: Invoke, write: WriteFile) -> None:
    write("pyproject.toml", '[tool.harness]\njudge_prompts = "judgess"\n')
    result = invoke("judges")
    assert result.exit_code == 2
    assert "setting 'judge_prompts': no folder judgess [bad-settings]" in result.stderr
