"""Generated scenario files in every style of YAML, each with values that their runs contradict."""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

AGENT: Final = """
import json
from pathlib import Path

VALUES = json.loads(Path(__file__).with_name("values.json").read_text(encoding="utf-8"))


def run(input):
    return {"v": VALUES[input]}
"""
TEXTS: Final = (
    *(
        "done",
        "Grüße, Ada",
        "two words",
        "a: b",
        "# no comment",
        "- item",
        "true",
        "12",
        "null",
        "",
        " lead",
        "trail ",
    ),
    *(
        "it's",
        'say "no"',
        "back\\slash",
        "one\ntwo",
        "one\n\ntwo\n",
        "one\n\n",
        "  in\nout\n",
        "日本語",
        "🎉 ok",
        "a\tb",
    ),
    *(
        "{a}",
        "[b]",
        "*c",
        "&d",
        "!e",
        "%f",
        "@g",
        "`h",
        "a, b",
        "x" * 3000,
        "w " * 400 + "end",
        "nel\x85ls\u2028",
        "~",
    ),
    *(
        "long words that a folded block has to break at some place, since they do not fit into one line",
        "1:30",
        "=",
        "<<",
    ),
)
SCALARS: Final = (0, 1, -3, 2.5, 1e20, True, False, None)
COMMENTS: Final = ("", "", "   # why", "\t# tab", "  #", " # 'quoted: [text]'", "\t")


@dataclass
class Suite:
    """A scenario file: its fixed parts, and between them the old values."""

    fixed: list[str] = field(default_factory=lambda: [""])
    old: list[str] = field(default_factory=list)
    kept: list[list[str]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    newline: str = "\n"
    bom: str = ""

    def text(self, text: str) -> None:
        self.fixed[-1] += text

    def slot(self, written: str, kept: list[str] | None = None) -> None:
        self.old.append(written)
        self.kept.append(kept or [])
        self.fixed.append("")

    @property
    def content(self) -> bytes:
        text = self.fixed[0] + "".join(map("".join, zip(self.old, self.fixed[1:], strict=True)))
        return (self.bom + text.replace("\n", self.newline)).encode()

    def write(self, folder: Path) -> Path:
        (folder / "agent.py").write_text(AGENT, encoding="utf-8")
        (folder / "values.json").write_text(json.dumps(self.values), encoding="utf-8")
        file = folder / "a.scenario.yaml"
        file.write_bytes(self.content)
        return file

    def new_parts(self, content: bytes) -> list[str]:
        """Return what is written now in place of the old values; every other byte must be as it was."""
        text = content.decode()
        assert text.startswith(self.bom)
        text = text.removeprefix(self.bom)
        if self.newline == "\r\n":
            assert text.count("\n") == text.count("\r\n")
            text = text.replace("\r\n", "\n")
        assert text.startswith(self.fixed[0])
        at, parts = len(self.fixed[0]), []
        for number, fixed in enumerate(self.fixed[1:], start=1):
            end = len(text) - len(fixed) if number == len(self.fixed) - 1 else text.find(fixed, at)
            assert end >= at, f"changed: {fixed!r}"
            assert text.startswith(fixed, end), f"changed: {fixed!r}"
            parts.append(text[at:end])
            at = end + len(fixed)
        for part, kept in zip(parts, self.kept, strict=True):
            place = 0
            for item in kept:
                place = part.find(item, place)
                assert place >= 0, f"{item!r} is lost in {part!r}"
        return parts


def generated(seed: int, scenarios: int = 8) -> Suite:
    """Return a suite whose runs contradict one value of each scenario."""
    dice = random.Random(seed)
    suite = Suite(newline=dice.choice(("\n", "\n", "\r\n")), bom=dice.choice(("", "", "\ufeff")))
    suite.text(f"# file {seed} — Grüße 🎉\nharness: 1\nmanifest: agent.py:run\n")
    suite.text(f"# {'long ' * 1000}\n" if dice.random() < 0.3 else "")
    suite.text("scenarios:\n")
    for number in range(scenarios):
        _scenario(suite, dice, number)
    suite.text("# the end" + dice.choice(("", "\n", "\n\n")))
    return suite


def _scenario(suite: Suite, dice: random.Random, number: int) -> None:
    key = f"k{number}"
    shape = dice.choice(
        ("scalar", "scalar", "block", "block", "list", "list", "alias", "case", "mapping", "nested")
    )
    suite.text(f"  # scenario {number}\n  - name: s{number}{dice.choice(COMMENTS)}\n")
    if shape == "alias":
        suite.text(f"    description: &a{number} old text\n")
    if shape == "case":
        _case(suite, dice, number)
        return
    suite.text(f"    input: {key}\n    expect:{dice.choice(COMMENTS)}\n")
    is_flow = shape in ("scalar", "alias") and dice.random() < 0.4
    suite.text("      output: { v: " if is_flow else "      output:\n        v: ")
    make = {
        "scalar": _scalar,
        "block": _block,
        "list": _list,
        "alias": _alias,
        "mapping": _mapping,
        "nested": _nested,
    }[shape]
    suite.values[key] = make(suite, dice, number)
    ending = (
        f" }}{dice.choice(COMMENTS)}\n"
        if is_flow
        else f"{dice.choice(COMMENTS)}\n"
        if shape == "scalar"
        else "\n"
    )
    suite.text(ending if shape != "block" else "")
    suite.text(f"      call_counts: {{tool: 0}}  # after {number}\n")


def _any(dice: random.Random) -> Any:
    return dice.choice((*TEXTS, *SCALARS))


def _scalar(suite: Suite, dice: random.Random, _number: int) -> Any:
    simple = ("old", "'it''s old'", '"old\\n"', "17", "true", "!!str 5", "&n old", "older text", "2.5")
    broken = ("old\n            text", "'old\n\n            text'", '"old \\\n            text"')
    suite.slot(dice.choice((*simple, *broken)))
    return _any(dice)


def _nested(suite: Suite, dice: random.Random, _number: int) -> Any:
    """A value of one of several mappings in a list, each over several lines."""
    changed, count = dice.randrange(3), 3
    gap, value = dice.choice((" ", "   ", "\n            ")), _any(dice)
    margin = " " * (12 if "\n" in gap else 11 + len(gap))
    for at in range(count):
        suite.text(f"\n          # item {at}\n          -{gap}'a': {at}\n{margin}b: ")
        suite.slot("old") if at == changed else suite.text("same")
        suite.text(dice.choice(COMMENTS))
    return [{"a": at, "b": value if at == changed else "same"} for at in range(count)]


def _alias(suite: Suite, dice: random.Random, number: int) -> Any:
    suite.slot(f"*a{number}")
    return dice.choice((*TEXTS, *SCALARS, ["x", 1], {"a": [1]}))


def _block(suite: Suite, dice: random.Random, _number: int) -> Any:
    header = dice.choice("|>") + dice.choice(("", "-", "+")) + dice.choice(("", "", "  # c: 'd'"))
    margin = " " * dice.choice((10, 12))
    lines = [
        f"{margin}{line}"
        for line in dice.choice((["was"], ["was", "so"], ["was", "", "so"], ["a b c d e f", "g h"]))
    ]
    blank = 0 if "+" in header else dice.choice((0, 0, 1, 2))
    suite.slot("\n".join([header, *lines]) + ("\n" if "+" in header else ""))
    suite.text(("" if "+" in header else "\n") + "\n" * blank)
    return dice.choice(TEXTS)


def _list(suite: Suite, dice: random.Random, _number: int) -> Any:
    old = [f"i{at}" for at in range(dice.randint(1, 4))]
    new: list[Any] = [item for item in old if dice.random() < 0.7]
    for _ in range(dice.randint(0, 2)):
        new.insert(dice.randint(0, len(new)), _any(dice))
    kept = [item for item in old if item in new]
    style = dice.choice(("flow", "lines", "block", "margin"))
    if style == "flow":
        joint = dice.choice((", ", ",", " , "))
        suite.slot(f"[{joint.join(old)}]", kept)
    elif style == "lines":
        suite.slot("[\n" + "".join(f"            {item},  # {item}!\n" for item in old) + "        ]", kept)
    else:
        margin = "\n" + " " * (8 if style == "margin" else 10)
        suite.fixed[-1] = suite.fixed[-1].removesuffix(" ") + dice.choice(("", "  # list"))
        items = [f"- {item}{dice.choice(COMMENTS)}" for item in old]
        above = [dice.choice(("", f"# above {item}")) for item in old]
        lines = [line for pair in zip(above, items, strict=True) for line in pair if line]
        gone = {line for line, item in zip(items, old, strict=True) if item not in new}
        suite.slot(margin + margin.join(lines), [line for line in lines if line not in gone] if new else [])
    return new


def _mapping(suite: Suite, dice: random.Random, _number: int) -> Any:
    suite.text(dice.choice(("{a: 1, b: ", '{"a": 1, "b": ', "{a: 1,\n          b: ")))
    suite.slot(dice.choice(("old", "[1, 2]", "{c: 1}", "3")))
    suite.text(", d: 4}")
    return {"a": 1, "b": dice.choice((*TEXTS, *SCALARS, [1], [2, "x"], {"c": 2}, {"e": "f"})), "d": 4}


def _case(suite: Suite, dice: random.Random, number: int) -> None:
    suite.text("    input: ${case.name}\n    expect: {output: {v: '${case.want}'}}\n    cases:\n")
    for row in range(2):
        key = f"r{number}_{row}"
        suite.text(f"      - {{name: {key}, want: ")
        suite.slot(dice.choice(("old", "'old'", '"old"', "17")))
        suite.text(f", note: n}}{dice.choice(COMMENTS)}\n")
        suite.values[key] = _any(dice)
