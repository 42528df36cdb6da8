"""The choice of the world to serve, and of the address."""

import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from harness.errors import ExtraMissing, FormatError
from harness.serve import Serving, serving
from harness.world.spec import WorldSpec
from tests.world.stubs import world_spec

TURNS = """
llm: [last]
mcp: {shop: {tools: [{name: find, stubs: [{return: last, times: 1}]}]}}
turns:
  - input: hi
    llm: [first]
    mcp:
      shop:
        tools:
          - {name: find, stubs: [{return: first, times: 1}]}
          - {name: buy, stubs: [{return: bought, times: 1}]}
  - {input: and?, llm: [second]}
"""

TWO = """\
harness: 1
manifest: agent.yaml
scenarios:
  - {name: one, llm: [from one]}
  - {name: two, llm: [from two]}
"""


def said(server: Serving) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx.post(f"{server.openai_url}/chat/completions", json=body)
    text: str = answer.json()["choices"][0]["message"]["content"]
    return text


def test_a_world_is_served_without_a_file() -> None:
    with serving(world_spec(llm=[{"node": "answer", "reply": "mine"}])) as server:
        assert said(server) == "mine"
        assert server.unused() == []


def test_the_stubs_of_all_turns_are_served_in_their_order(scenario: Callable[[str], Path]) -> None:
    with serving(scenario(TURNS)) as server:
        assert [text.partition(" (")[0] for text in server.unused()] == [
            "never used: llm: reply: 'first'",
            "never used: llm: reply: 'second'",
            "never used: llm: reply: 'last'",
            "never used: mcp.shop.find: return: 'first'",
            "never used: mcp.shop.find: return: 'last'",
            "never used: mcp.shop.buy: return: 'bought'",
        ]
        assert [said(server) for _ in range(3)] == ["first", "second", "last"]


def test_a_name_selects_one_of_several_scenarios(tmp_path: Path) -> None:
    file = tmp_path / "two.scenario.yaml"
    file.write_text(TWO, encoding="utf-8")
    with serving(f"{file}::two") as server:
        assert said(server) == "from two"


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [("", "which-scenario", "::one\n"), ("::tow", "unknown-scenario", "did you mean 'two'?")],
)
def test_without_a_valid_name_the_error_lists_the_names(
    tmp_path: Path, name: str, code: str, told: str
) -> None:
    file = tmp_path / "two.scenario.yaml"
    file.write_text(TWO, encoding="utf-8")
    with pytest.raises(FormatError) as raised, serving(f"{file}{name}"):
        pass
    assert raised.value.code == code
    assert told in str(raised.value)


def test_a_port_in_use_is_an_error() -> None:
    with serving(WorldSpec()) as server:
        port = int(server.url.rpartition(":")[2])
        with (
            pytest.raises(FormatError, match=f"cannot listen on 127.0.0.1:{port}"),
            serving(WorldSpec(), port=port),
        ):
            pass


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ExtraMissing, match=r'pip install "agent-scenarios\[serve\]"'), serving(WorldSpec()):
        pass
