"""Tools that return what cannot be written, raise what ends a process, or close what results are shown on."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.report.encoding import encode
from harness.report.results import line
from harness.scenario.load import load_file
from harness.scenario.run import run_scenario

MANIFEST = """\
version: "1.0"
start_at: a
end_at: [a]
nodes: [{id: a, handler: h}]
edges: []
"""
SCENARIO = """\
harness: 1
manifest: agent.yaml
scenarios: [{name: it, input: {q: 1}, handlers: {h: harmful_tools.handler}}]
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The line of results of a run whose handler has this body."""

    def go(body: str) -> Any:
        monkeypatch.delitem(sys.modules, "harmful_tools", raising=False)
        (tmp_path / "agent.yaml").write_text(MANIFEST, encoding="utf-8")
        code = f"import asyncio, os, sys\nclass It: pass\ndef handler(state):\n    {body}\n"
        (tmp_path / "harmful_tools.py").write_text(code, encoding="utf-8")
        (tmp_path / "it.scenario.yaml").write_text(SCENARIO, encoding="utf-8")
        [outcome] = run_scenario(load_file(tmp_path / "it.scenario.yaml").scenarios[0])
        return json.loads(encode(line(outcome)))

    return go


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("10**5000", hex(10**5000)),
        ("float('nan')", "nan"),
        ("float('-inf')", "-inf"),
        (r"'\ud800'", "\\ud800"),
        (r"b'\xff'", "\\xff"),
        ("{10**5000: 1, None: 2}", {hex(10**5000): 1, "None": 2}),
        ("(lambda a: a.append(a) or a)([])", ["…"]),
    ],
    ids=["integer", "nan", "infinity", "surrogate", "bytes", "keys", "itself"],
)
def test_a_value_that_json_does_not_have_is_written_as_text(run: Any, value: str, written: Any) -> None:
    result = run(f"return {{'x': {value}}}")
    assert (result["verdict"], result["state"]["x"]) == ("passed", written)


def test_a_value_nested_without_end_is_written_as_far_as_it_can_be_read(run: Any) -> None:
    result = run(
        "a = []; exec('for _ in range(100_000): a = [a]', globals(), s := {'a': a}); return {'x': s['a']}"
    )
    assert result["verdict"] == "passed"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyboardInterrupt", "it raised KeyboardInterrupt"),
        ("raise GeneratorExit('bye')", "it raised GeneratorExit: bye"),
        (
            "raise BaseExceptionGroup('g', [KeyboardInterrupt()])",
            "it raised BaseExceptionGroup: g (1 sub-exception)",
        ),
        ("sys.exit(0)", "it called sys.exit(0)"),
        ("raise MemoryError('no memory')", "no memory"),
        ("handler(state)", "maximum recursion depth exceeded"),
        ("raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})", "(its text cannot be made)"),
    ],
)
def test_whatever_a_tool_raises_fails_its_run_alone(run: Any, body: str, message: str) -> None:
    result = run(body)
    assert (result["verdict"], result["error"]["node"]) == ("failed", "a")
    assert result["error"]["message"].startswith(message)


def test_a_tool_that_cancels_the_run_is_an_error(run: Any) -> None:
    result = run("asyncio.current_task().cancel(); return {}")
    assert result["verdict"] == "error"


def test_a_text_of_an_error_is_cut_where_nobody_would_read_on(run: Any) -> None:
    message = run("raise ValueError('x' * 1_000_000)")["error"]["message"]
    assert message.endswith("x… (1000000 characters)")
    assert len(message) < 30_000


@pytest.mark.parametrize("body", ["sys.stdout.close()", "os.close(1)", "sys.stdout = None"])
def test_a_tool_that_closes_standard_output_closes_it_for_nobody_else(
    run: Any, body: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{body}; return {{}}")["verdict"] == "passed"
    print("still here", flush=True)
    assert "still here" in capfd.readouterr().out
