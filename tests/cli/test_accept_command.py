"""`harness accept`, on runs of real scenarios: what is proposed, what is refused, and what stays as it was."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fixtures import Invoke, WriteFile
from tests.recording.safety import Project, Terminal

AGENT = "def run(input):\n    return input\n"
FILE = "a.scenario.yaml"
HEAD = "harness: 1\nmanifest: agent.py:run\nscenarios:\n"


@pytest.fixture
def ran(write: WriteFile, invoke: Invoke) -> Any:
    """A function that writes a scenario file, runs it, and returns the file. The agent returns its input."""

    def run(text: str, *options: str, head: str = HEAD, **files: str) -> Path:
        write("agent.py", AGENT)
        for name, content in files.items():
            write(name.replace("_", "."), content)
        file = write(FILE, head + text)
        invoke("run", ".", "-q", *options)
        return file

    return run


def accepted(file: Path, before: str, invoke: Invoke, *options: str) -> tuple[str, str]:
    """Accept everything; return the new text behind `before`, and the output."""
    done = invoke("accept", "--yes", *options)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return file.read_text(encoding="utf-8").removeprefix(before), done.output


SCENARIO = "  - {{name: {name}, input: {actual}, expect: {{output: {expected}}}}}  # kept\n"


VALUES = [
    ("{a: x}", "{a: y}", "{a: y}"),
    ("{a: 'x', b: 1}", "{a: y, b: 1, c: 2}", "{a: 'y', b: 1}"),
    ("{a: 1}", "{b: 1}", "{a: {$missing: true}}"),
    ("{a: x}", "{a: {}}", "{a: {$exact: {}}}"),
    ("{a: [1, 2]}", "{a: [2]}", "{a: [2]}"),
    ("{a: [{b: 1}]}", "{a: [{b: 1, id: 7}, {b: 2, id: 8}]}", "{a: [{b: 1}, {b: 2}]}"),
    ("{a: [{$gt: 0}, 2]}", "{a: [3, 2, 1]}", "{a: [{$gt: 0}, 2, 1]}"),
    ("{a: {$len: 3}}", "{a: [1]}", "{a: {$len: 1}}"),
    ("{a: {$gte: 3}}", "{a: 2}", "{a: {$gte: 2}}"),
    ("{a: {$approx: {value: 1.5, abs: 0.1}}}", "{a: 3.5}", "{a: {$approx: {value: 3.5, abs: 0.1}}}"),
    ("{a: {$json: {b: 1}}}", "{a: '{\"b\": 2}'}", "{a: {$json: {b: 2}}}"),
    ("{a: {$exact: {b: 1}}}", "{a: {b: 2}}", "{a: {$exact: {b: 2}}}"),
    ("{a: {$all: [{$len: 1}, {$contains: y}]}}", "{a: yy}", "{a: {$all: [{$len: 2}, {$contains: y}]}}"),
]
"""What is expected, what the run has, and what is written."""


def test_a_value_is_replaced_by_what_the_run_has_there(ran: Any, invoke: Invoke) -> None:
    def scenarios(column: int) -> str:
        rows = enumerate(VALUES)
        return "".join(
            SCENARIO.format(name=f"s{at}", actual=row[1], expected=row[column]) for at, row in rows
        )

    file = ran(scenarios(0))

    text, _ = accepted(file, HEAD, invoke)

    assert text == scenarios(2)
    assert invoke("run", ".").exit_code == 0


def test_what_only_a_person_can_tell_is_listed_with_its_place(ran: Any, invoke: Invoke) -> None:
    matchers = ("{$contains: x}", "{$gt: 3}", "{$regex: '^x'}", "{$in: [1]}", "{$not: 2}", "{$type: string}")
    rows = enumerate(matchers)
    before = "".join(
        SCENARIO.format(name=f"s{at}", actual="{a: 2}", expected=f"{{a: {each}}}") for at, each in rows
    )
    file = ran(before)

    text, output = accepted(file, HEAD, invoke)

    assert text == before
    places = re.findall(r"a\.scenario\.yaml:(\d+):\d+: s\d · output: only a person can tell", output)
    assert places == ["4", "5", "6", "7", "8", "9"]
    assert invoke("accept", "--yes").exit_code == 1


def test_an_expectation_that_any_run_satisfies_is_not_written(ran: Any, invoke: Invoke) -> None:
    ran(
        "  - {name: s, input: {}, expect: {never: [run], max_visits: {run: 0}}}\n"
        "  - {name: t, input: {}, timeout: 5, expect: {path_includes: [run], visits: {run: {$gte: 2}}}}\n"
    )

    done = invoke("accept", "--dry-run")

    assert "s · never: 'never' lists nothing, so it cannot fail" in done.output
    assert "+  - {name: s, input: {}, expect: {never: [run], max_visits: {run: 1}}}" in done.output
    assert "t · visits: visits.run cannot fail: it also holds where" in done.output


TWO_NODES = """\
manifest_version: 1
agents:
  two:
    state: {fields: [{name: count, type: int, default: 0}]}
    graph:
      entry_point: first
      nodes:
        - {name: first, type: set_state, args: {values: {count: state.count + 1}}}
        - {name: second, type: set_state, args: {values: {count: state.count + 1}}}
      edges: [{source: first, branches: [{condition: state.count > 5, target: second}], default: __end__}]
"""


def test_a_route_that_only_the_entry_is_left_of_is_not_written(
    ran: Any, invoke: Invoke, write: WriteFile
) -> None:
    write("two.yaml", TWO_NODES)
    head = HEAD.replace("agent.py:run", "two.yaml")
    file = ran("  - {name: s, expect: {path_includes: [first, second]}}\n", head=head)

    text, output = accepted(file, head, invoke)

    assert text == "  - {name: s, expect: {path_includes: [first, second]}}\n"
    assert "s · path_includes: path_includes cannot fail" in output


AROUND = """\
  - name: first        # 'a "comment"
    input: {a: y}
    expect:
      output: &shared {a: x}   # the anchor
  - name: second
    input: {a: %s}
    expect:
      output: *shared
"""


def test_an_anchor_whose_users_all_changed_is_changed(ran: Any, invoke: Invoke) -> None:
    file = ran(AROUND % "y")

    text, output = accepted(file, HEAD, invoke)

    assert text == (AROUND % "y").replace("&shared {a: x}", "&shared {a: y}")
    assert "accepted 2 expectations" in output


def test_all_that_use_a_text_are_named(ran: Any) -> None:
    ran(AROUND % "y")

    shown = at_terminal("a")

    assert "also second · output (a.scenario.yaml:" in shown
    assert "2 accepted" in shown


def test_an_anchor_that_another_relies_on_moves_to_it_with_its_value(ran: Any, invoke: Invoke) -> None:
    file = ran(AROUND % "x")

    text, _ = accepted(file, HEAD, invoke)

    assert text == (AROUND % "x").replace("&shared {a: x}", "{a: y}").replace("*shared", "&shared {a: x}")
    assert invoke("run", ".").exit_code == 0


def test_an_alias_is_replaced_by_the_value(ran: Any, invoke: Invoke) -> None:
    before = (AROUND % "z").replace("{a: y}", "{a: x}")
    file = ran(before)

    text, _ = accepted(file, HEAD, invoke)

    assert text == before.replace("*shared", "{a: z}")


def test_an_expectation_of_the_defaults_is_changed_there_if_all_runs_agree(ran: Any, invoke: Invoke) -> None:
    head = (
        "harness: 1\nmanifest: agent.py:run\ndefaults:\n  expect: {output: {a: x}}  # for all\nscenarios:\n"
    )
    file = ran("  - {name: s, input: {a: y}}\n  - {name: t, input: {a: y}}\n", head=head)

    text, _ = accepted(file, "", invoke)

    assert "  expect: {output: {a: y}}  # for all\n" in text


def test_an_expectation_of_the_defaults_that_needs_two_values_is_refused(ran: Any, invoke: Invoke) -> None:
    head = "harness: 1\nmanifest: agent.py:run\ndefaults:\n  expect: {output: {a: x}}\nscenarios:\n"
    file = ran("  - {name: s, input: {a: y}}\n  - {name: t, input: {a: z}}\n", head=head)

    text, output = accepted(file, head, invoke)

    assert text == "  - {name: s, input: {a: y}}\n  - {name: t, input: {a: z}}\n"
    assert "`defaults` of 2 scenarios needs several values" in output


ROWS = (
    "  - name: s\n    input: {a: '${case.got}'}\n    expect: {output: {a: '${case.want}'}}\n    cases: %s\n"
)


def test_the_cell_of_a_table_in_the_file_is_changed(ran: Any, invoke: Invoke) -> None:
    rows = "\n      - {name: one, got: 1, want: 1}\n      - {name: two, got: 2, want: 3}  # wrong"
    file = ran(ROWS % rows)

    text, _ = accepted(file, HEAD, invoke)

    assert text == ROWS % rows.replace("want: 3", "want: 2")


TABLES = {
    "a.csv": ('name,got,want\none,1,1\n\n"a, b","x","y, z"\n', 'name,got,want\none,1,1\n\n"a, b","x","x"\n'),
    "b.csv": ("name,got,want\none,,y\n", "name,got,want\none,,\n"),
    "c.csv": ("name,want,got\r\none,y,12\r\n", "name,want,got\r\none,12,12\r\n"),
    "d.jsonl": ('{"name": "n", "got": "é", "want":  "y"}\n', '{"name": "n", "got": "é", "want":  "é"}\n'),
    "e.json": ('[{"name": "n", "got": 2, "want": 3}]', '[{"name": "n", "got": 2, "want": 2}]'),
    "f.yaml": ("- {name: n, got: 2, want: 3} # c", "- {name: n, got: 2, want: 2} # c"),
}
"""Tables of cases, before and after."""


def test_the_cell_of_a_table_is_changed_in_its_file(ran: Any, invoke: Invoke) -> None:
    for name, (table, _) in TABLES.items():
        Path(name).write_bytes(table.encode())
    ran("".join((ROWS % name).replace("name: s", f"name: of {name}") for name in TABLES))

    assert invoke("accept", "--yes").exit_code == 0

    for name, (_, after) in TABLES.items():
        assert Path(name).read_bytes() == after.encode()
    assert invoke("run", ".").exit_code == 0


def test_a_cell_that_is_used_elsewhere_is_refused(ran: Any, invoke: Invoke) -> None:
    rows = "[{name: one, got: 1}]"
    file = ran(
        (ROWS % rows)
        .replace("case.want", "case.got")
        .replace("{a: '${case.got}'}\n", "{a: '${case.got}', b: 1}\n", 1)
    )
    Path("agent.py").write_text("def run(input):\n    return {'a': 5}\n", encoding="utf-8")
    invoke("run", ".")
    before = file.read_text(encoding="utf-8")

    assert "`${case.got}` is used 2 times" in accepted(file, "", invoke)[1]
    assert file.read_text(encoding="utf-8") == before


def test_expectations_of_turns_and_of_the_way_of_a_run_are_changed(ran: Any, invoke: Invoke) -> None:
    before = (
        "  - name: s\n    turns:\n      - input: {a: 1}\n        expect: {output: {a: 2}, visits: {run: 2}}\n"
        "      - input: {a: 3}\n        expect:\n          path: [run, run]\n"
        "    expect: {path: [run], call_counts: {tool: 1}}\n"
    )
    file = ran(before)

    text, _ = accepted(file, HEAD, invoke)

    assert text == before.replace("{a: 2}, visits: {run: 2}", "{a: 1}, visits: {run: 1}").replace(
        "path: [run, run]", "path: [run]"
    ).replace("{path: [run], call_counts: {tool: 1}}", "{path: [run, run], call_counts: {tool: 0}}")
    assert invoke("run", ".").exit_code == 0


CHANGED = SCENARIO.format(name="s", actual="{a: y}", expected="{a: x}")


def test_nothing_is_written_into_a_file_that_changed_since_the_run(ran: Any, invoke: Invoke) -> None:
    file = ran(CHANGED)
    file.write_text(file.read_text() + "# edited\n", encoding="utf-8")

    text, output = accepted(file, HEAD, invoke)

    assert text == CHANGED + "# edited\n"
    assert "a.scenario.yaml changed since the run: run it again" in output


def test_without_a_terminal_the_patch_is_printed_and_nothing_is_changed(ran: Any, invoke: Invoke) -> None:
    file = ran(CHANGED)

    done = invoke("accept")

    assert done.exit_code == 1
    assert "-  - {name: s, input: {a: y}, expect: {output: {a: x}}}  # kept\n" in done.output
    assert "+  - {name: s, input: {a: y}, expect: {output: {a: y}}}  # kept\n" in done.output
    assert "nothing was changed; --yes accepts everything" in done.output
    assert invoke("accept", "--dry-run").exit_code == 0
    assert file.read_text() == HEAD + CHANGED


def test_what_fails_the_same_way_in_no_other_repeat_is_refused(
    ran: Any, invoke: Invoke, write: WriteFile
) -> None:
    write("count", "")
    ran(CHANGED, "--repeat", "2")
    Path("agent.py").write_text(
        "from pathlib import Path\n\ndef run(input):\n    file = Path('count')\n"
        "    file.write_text(file.read_text() + 'n')\n    return {'a': file.read_text()}\n",
        encoding="utf-8",
    )
    invoke("run", ".", "--repeat", "2")

    assert "it varies from run to run: compare repeat" in invoke("accept", "--yes").output


def test_consequences_of_an_error_are_not_accepted(ran: Any, invoke: Invoke) -> None:
    file = ran(CHANGED)
    Path("agent.py").write_text("def run(input):\n    raise ValueError('broken')\n", encoding="utf-8")
    invoke("run", ".")

    text, output = accepted(file, HEAD, invoke)

    assert text == CHANGED
    assert "s · output: it follows from the error: ValueError: broken" in output


def test_the_reason_is_the_first_event_where_the_runs_differ(ran: Any, invoke: Invoke) -> None:
    ran(CHANGED + SCENARIO.format(name="other", actual="{a: 1}", expected="{a: 1}"))
    Path("agent.py").write_text("def run(input):\n    return {'a': 'z'}\n", encoding="utf-8")
    invoke("run", f"{FILE}::s")

    shown = at_terminal("s")

    assert "first event where the runs differ: what run changes of the state" in shown


def at_terminal(*typed: str, options: Sequence[str] = (), last: str = "\n") -> str:
    """Run the command at a terminal of its own, with a line of `typed` for each question; return its output."""
    project = Project(Path.cwd(), {"EDITOR": "", "VISUAL": ""})
    with Terminal(project, "harness", "accept", *options) as terminal:
        for number, line in enumerate(typed, start=1):
            asked = "as YAML [" if typed[number - 2 : number - 1] == ("e",) else "[e]dit? "
            terminal.type_after(asked, line, end=last if number == len(typed) else "\n")
        shown, code = terminal.end()
    return f"{shown}exit {code}"


FOUR = "".join(CHANGED.replace("name: s", f"name: s{number}") for number in range(4))


def test_at_a_terminal_each_change_is_accepted_rejected_skipped_or_edited(ran: Any) -> None:
    file = ran(FOUR)

    shown = at_terminal("a", "r", "s", "e", "{$gt: 1}", "e", "{$contains: y}", "a")

    wanted = FOUR.replace("{a: x}", "{a: y}", 1)
    wanted = "{a: {$contains: y}}".join(wanted.rsplit("{a: x}", 1))
    assert file.read_text() == HEAD + wanted
    assert "not taken: it does not hold for this run" in shown
    assert "rejected: s1 · output" in shown
    assert "2 accepted, 1 rejected, 1 skipped" in shown
    assert shown.endswith("exit 1")


def test_all_changes_of_one_cause_are_accepted_with_one_answer(ran: Any, invoke: Invoke) -> None:
    file = ran(FOUR)

    shown = at_terminal("a", options=["--all"])

    assert file.read_text() == HEAD + FOUR.replace("{a: x}", "{a: y}")
    assert shown.count("also s") == 3
    assert "4 accepted" in shown
    assert shown.endswith("exit 0")
    invoke("run", ".")
    assert "nothing failed in the last run" in invoke("accept").output


def test_a_value_that_is_no_yaml_is_not_proposed_again(ran: Any) -> None:
    file = ran(CHANGED)
    project = Project(Path.cwd(), {"EDITOR": "", "VISUAL": ""})

    with Terminal(project, "harness", "accept") as terminal:
        terminal.type_after("[e]dit? ", "e")
        terminal.type_after("as YAML [y]: ", "[")
        terminal.type_after("as YAML [y]: ", "")
        terminal.type_after("[e]dit? ", "a")
        shown, _ = terminal.end()

    assert "not YAML" in shown
    assert file.read_text() == HEAD + CHANGED.replace("{a: x}", "{a: y}")


def test_ctrl_c_loses_nothing(ran: Any) -> None:
    file = ran(FOUR)

    shown = at_terminal("a", "", last="\x03")

    assert file.read_text() == HEAD + FOUR.replace("{a: x}", "{a: y}", 1)
    assert shown.endswith("exit 3")


# ---------------------------------------------------------------- which, and what is refused


def test_only_those_that_are_named_or_match(ran: Any, invoke: Invoke) -> None:
    file = ran(FOUR)

    assert invoke("accept", f"{FILE}::s2", "--yes").exit_code == 0

    assert file.read_text().count("{output: {a: y}}") == 1
    ran(FOUR)
    invoke("accept", ".", "-k", "s1 or s3", "--yes")
    assert file.read_text().count("{output: {a: y}}") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("other.scenario.yaml",), "'other.scenario.yaml' was not in the last run"),
        ((f"{FILE}::s9",), "did you mean 'a.scenario.yaml::s"),
        (("-k", "nothing"), "no scenario of the last run matches -k"),
        (("-k", "and"), "expected a part of a name"),
    ],
)
def test_a_selection_of_nothing_is_refused(
    ran: Any, invoke: Invoke, arguments: tuple[str, ...], message: str
) -> None:
    ran(FOUR)

    done = invoke("accept", *arguments)

    assert done.exit_code == 2
    assert message in done.output


def test_no_last_run_and_damaged_results_are_refused(ran: Any, invoke: Invoke) -> None:
    assert "cannot read the results" in invoke("accept").output
    ran(CHANGED)
    results = Path("reports/latest/results.jsonl")
    results.write_text("{}\n" + results.read_text(), encoding="utf-8")

    done = invoke("accept")

    assert done.exit_code == 2
    assert "results.jsonl:1:1: error: not a line of" in done.output


def test_a_read_only_file_is_refused(ran: Any, invoke: Invoke) -> None:
    file = ran(CHANGED)
    file.chmod(0o444)

    done = invoke("accept", "--yes")

    assert done.exit_code == 2
    assert "a.scenario.yaml cannot be written: it is read-only" in done.output
    assert file.read_text() == HEAD + CHANGED


def test_a_file_that_is_gone_is_told(ran: Any, invoke: Invoke) -> None:
    ran(CHANGED).unlink()

    done = invoke("accept", "--yes")

    assert done.exit_code == 1
    assert "a.scenario.yaml::s: a.scenario.yaml is not there any more" in done.output


def test_the_permissions_of_the_file_stay_and_so_does_a_link(ran: Any, invoke: Invoke) -> None:
    file = ran(CHANGED)
    real = file.rename(file.with_name("real.txt"))
    real.chmod(0o640)
    file.symlink_to(real.name)

    invoke("accept", "--yes")

    assert file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "output: {a: y}" in real.read_text()


def test_it_works_in_a_folder_of_the_project(
    ran: Any, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pyproject.toml").touch()
    file = ran(CHANGED).absolute()
    Path("below").mkdir()
    monkeypatch.chdir("below")

    assert f"--- a/{FILE}" in invoke("accept", "..").output
    assert "output: {a: y}" in accepted(file, HEAD, invoke)[0]


def test_it_reads_a_run_of_pytest(ran: Any, invoke: Invoke, installed: str) -> None:
    file = ran(CHANGED)
    Path("reports/latest/results.jsonl").unlink()
    subprocess.run([installed.replace("harness", "pytest"), "-q", "-p", "no:cacheprovider", "."], check=False)

    text, _ = accepted(file, HEAD, invoke)

    assert "output: {a: y}" in text
