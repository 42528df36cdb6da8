from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.serve import Serving, serving

HEAD = "harness: 1\nmanifest: agent.yaml\nscenarios:\n- name: one\n"


@pytest.fixture(autouse=True)
def _nothing_between_us(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], Path]:
    """Write a file with one scenario with these keys."""

    def written(keys: str) -> Path:
        path = tmp_path / "one.scenario.yaml"
        lines = "".join(f"  {line}\n" for line in keys.strip("\n").splitlines())
        path.write_text(HEAD + lines, encoding="utf-8")
        return path

    return written


@pytest.fixture
def serve(scenario: Callable[[str], Path]) -> Iterator[Callable[[str], Serving]]:
    """Serve a scenario with these keys until the test ends."""
    with ExitStack() as servers:
        yield lambda keys: servers.enter_context(serving(scenario(keys)))
