"""Suites of damaged files: each case is a scenario in a file of its own; its manifest is damaged, or that file."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import yaml

from harness.source.document import read, relative_path
from tests.fuzz.mutations import mutated

_KEY: Final = re.compile(
    r"""^(?P<before>[ \t]*(?:- )?)(?P<key>"[^"\n]+"|[\w$-]+)(?P<after>[ ]*:)""", re.MULTILINE
)
_NO_TEXT: Final = ("1", "200", "-0", "1.5", "0x1F", "2024-01-01", "yes", "null", "~", "9" * 5000)
_SCALAR: Final = re.compile(r"(?<=: )[^\s\[{|>&*][^\n,}\]]*")


def _doubled_keys(text: str, draw: random.Random) -> str:
    """Give one or two keys twice."""
    end = ",\n" if _is_json(text) else "\n"
    for _ in range(draw.randint(1, 2)):
        text = _at(_KEY, text, draw, lambda key: f"{' ' * len(key['before'])}{key['key']}: 1{end}{key[0]}")
    return text


def _number_keys(text: str, draw: random.Random) -> str:
    """Make some keys numbers, dates, booleans, null, or the same number."""
    for _ in range(draw.randint(1, 3)):
        text = _at(_KEY, text, draw, lambda key: f"{key['before']}{draw.choice(_NO_TEXT)}{key['after']}")
    return text


def _cut(text: str, draw: random.Random) -> str:
    return text[: draw.randrange(len(text) + 1)]


def _binary(text: str, draw: random.Random) -> bytes:
    """Change some bytes, or encode the file in another way."""
    if draw.random() < 0.2:
        return text.encode(draw.choice(("utf-16", "utf-32", "cp037")), "replace")
    data = bytearray(text.encode("utf-8", "replace") or b"x")
    for _ in range(draw.randint(1, 20)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


def _deep(text: str, draw: random.Random) -> str:
    """Nest a value deeply."""
    depth = draw.choice((60, 99, 101, 300, 5000))
    opening, closing = draw.choice((("[", "]"), ('{"a": ', "}"), ("[{a: ", "}]")))
    return _at(_SCALAR, text, draw, lambda _: opening * depth + "1" + closing * depth)


def _bomb(text: str, draw: random.Random) -> str:
    """Add aliases of aliases, or one very long value."""
    if _is_json(text) or draw.random() < 0.3:
        long = draw.choice(("9" * 10_000, '"' + "x" * 300_000 + '"', "[" + "0, " * 50_000 + "0]"))
        return _at(_SCALAR, text, draw, lambda _: long)
    wide = draw.choice((2, 10))
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * wide)}]" for n in range(1, 30))]
    merged = ["m0: &m0 {a: 1}", *(f"m{n}: &m{n} {{<<: *m{n - 1}, k{n}: *m{n - 1}}}" for n in range(1, 30))]
    return "\n".join([*draw.choice((lines, merged)), text])


def _syntax(text: str, draw: random.Random) -> str:
    """Leave a quote open, indent with a tab, or put a control character or another line break into a line."""
    lines = text.splitlines(keepends=True) or [""]
    at = draw.randrange(len(lines))
    odd = draw.choice(("\x00", "\x07", "\x85", "\u2028", "\ufeff", "\r", "%", "@", "---\n", "!!x ", "? "))
    place = draw.randrange(len(lines[at]) + 1)
    changed = (
        re.sub(r":[ ]?", ': "', lines[at], count=1),
        "\t" + lines[at],
        lines[at][:place] + odd + lines[at][place:],
    )
    return "".join([*lines[:at], draw.choice(changed), *lines[at + 1 :]])


def _replaced(_text: str, draw: random.Random) -> bytes:
    """Put something else in place of the whole file."""
    return draw.choice(
        (b"", b"\n# nothing\n", b"null", b"[]", b"- a\n- b\n", b"text", b"\xff\xfe", b"{", b"1: 2\n1: 3\n")
    )


def _edited(text: str, draw: random.Random) -> bytes:
    """Edit lines, bytes or data, as the mutations of these tests do."""
    return mutated(text, draw, json=_is_json(text))


# In the order in which two are combined: only an undamaged file can be edited as data.
DAMAGES: Final[Sequence[Callable[[str, random.Random], str | bytes]]] = (
    _edited, _doubled_keys, _number_keys, _deep, _bomb, _syntax, _cut, _binary, _replaced,
)  # fmt: skip


def damaged(text: str, draw: random.Random) -> bytes:
    """Return a YAML or JSON file with one problem, or with two at once."""
    data = text.encode()
    damages = draw.sample(DAMAGES, draw.choice((1, 1, 2)))
    for damage in sorted(damages, key=DAMAGES.index):
        found = damage(data.decode("utf-8", "replace"), draw)
        data = found if isinstance(found, bytes) else found.encode("utf-8", "replace")
    return data


def _at(pattern: re.Pattern[str], text: str, draw: random.Random, new: Callable[[re.Match[str]], str]) -> str:
    """Replace one of the matches of a pattern."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    one = draw.choice(found)
    return text[: one.start()] + new(one) + text[one.end() :]


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def write_cases(suite: Path, seeds: Iterable[int]) -> None:
    """Write a scenario file with one case for each seed into a suite, beside the file that the scenario is from.

    Its manifest is damaged, or the file itself.
    """
    scenarios = [
        (document, scenario)
        for file in sorted(suite.rglob("*.scenario.yaml"))
        for document in [read(file, yaml="1.2")]
        for scenario in document.value["scenarios"]
    ]
    for seed in seeds:
        draw = random.Random(seed)
        document, scenario = draw.choice(scenarios)
        folder, name = Path(document.file).parent, f"damaged_{seed}"
        case = {"manifest": document.value.get("manifest"), **scenario, "name": name}
        content = {**document.value, "scenarios": [case]}
        content.pop("manifest", None)
        target = folder / f"{name}.scenario.yaml"
        if draw.random() < 0.3:
            target.write_bytes(damaged(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), draw))
            continue
        first, *others = case["manifest"] if isinstance(case["manifest"], list) else [case["manifest"]]
        case["manifest"] = [_damaged_copy(folder / first, name, folder, draw), *others]
        target.write_text(json.dumps(content))


def _damaged_copy(manifest: Path, name: str, folder: Path, draw: random.Random) -> str:
    """Damage a copy of a manifest, or of one file in a copy of an agent's folder; return its path from `folder`."""
    copy = manifest.with_name(f"{name}_{manifest.name}")
    if manifest.is_dir():
        shutil.copytree(manifest, copy)
    elif manifest.is_file():
        shutil.copyfile(manifest, copy)
    files = sorted(copy.rglob("*.yaml")) if copy.is_dir() else [copy]
    if files and (target := draw.choice(files)).is_file():
        target.write_bytes(damaged(target.read_text(encoding="utf-8"), draw))
    return relative_path(copy, folder)
