from pathlib import Path

import pytest

from harness.errors import FormatError
from harness.source.document import DocumentPath, parse, read

TEXT = """\
title = "x" # said = "y"

[tool.harness]
report = "r"

[tool.harness.gate]
"min_fitness" = 0.9
min_coverage = {nodes = 2}
bounds.edges = 3
listed = [
  1,
]

[[tool.harness.gate.by]]
tag = "a"

[[tool.harness.gate.by]]
tag = "b"
"""
GATE = ("tool", "harness", "gate")


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("title",), "1:1", "1:9"),
        ((*GATE, "min_fitness"), "7:1", "7:17"),
        ((*GATE, "min_coverage", "nodes"), "8:1", "8:16"),
        ((*GATE, "bounds", "edges"), "9:1", "9:16"),
        ((*GATE, "listed", 0), "10:10", "10:10"),
        ((*GATE, "by", 1, "tag"), "18:1", "18:7"),
    ],
)
def test_a_key_has_its_location(path: DocumentPath, key: str, value: str) -> None:
    document = parse(TEXT, file="p.toml", toml=True)

    assert str(document.key_span(path)) == f"p.toml:{key}"
    assert str(document.span(path)) == f"p.toml:{value}"


def test_invalid_toml_is_reported_at_its_location(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("a = 1\nb = \n", encoding="utf-8")

    with pytest.raises(FormatError, match="not TOML: invalid value") as refused:
        read(tmp_path / "p.toml", error=FormatError)

    assert str(refused.value.problems[0].span) == f"{tmp_path / 'p.toml'}:2:5"
