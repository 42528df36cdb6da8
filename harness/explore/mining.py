"""Mining of graphs for what they compare with, and for the shape of what its expressions, templates and code look up.

Expressions are recognised by their form, so that one mechanism serves all dialects. Everything is in order of
appearance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from harness.errors import HarnessError
from harness.explore.reads import JSON, WHOLE, Found, read_python
from harness.graph.model import Graph
from harness.source.document import parse

Reads = Mapping[str, Any]
"""Names, each with a mapping of what is read below it. An item of a list is named by its index, any by `*`."""

_QUOTED: Final = re.compile(r"""(?<!\w)(['"`])((?:(?!\1)[^\n\\]){0,80})\1(?!\w)""")
_NAME: Final = r"[A-Za-z_]\w*"
_TEXT: Final = r"§\d+§"
"""A quoted text in an expression that is read: its number."""
_STEP: Final = rf"\.{_NAME}(?![\w(])|\[(?:\d+|{_TEXT})\]"
_TERM: Final = rf"(?:not )?{_NAME}(?:{_STEP})*"
_PATH: Final = re.compile(
    rf"(?<![\w.§])(?P<root>{_NAME}(?![\w(])|json\((?:[^()]|\([^()]*\))*\))(?P<steps>(?:{_STEP})*)"
    rf"(?:(?:\s*(?:[=!]=|[<>]=?)\s*|\.\w+\(\s*)(?P<literal>{_TEXT}|-?\d+(?:\.\d+)?|true|false))?",
    re.IGNORECASE,
)
_NUMBERS: Final = re.compile(r"(?:[=!]=|[<>]=?)\s*(-?\d+(?:\.\d+)?)|(-?\d+(?:\.\d+)?)\s*(?:[=!]=|[<>]=?)")
_TESTED: Final = re.compile(
    rf"(?:[=!]=\s*|\.\w+\(\s*){_TEXT}|{_TEXT}\s*(?:[=!]=|in\b)|\bin\s*[\[(][^\])]*[\])]"
)
_EXPRESSION: Final = re.compile(
    rf"[=!<>]=|[\w)\]§] [<>] |&&|\|\||\w\(|§ in |\bin [\[(]|^(?:{'|'.join(WHOLE)})(?:{_STEP})+$"
    rf"|^{_TERM}(?: (?:and|or) {_TERM})+$"
)
_PLACEHOLDER: Final = re.compile(rf"(?<!\$)\{{\{{?\s*({_NAME}(?:{_STEP})*)\s*\}}\}}?")
_KEYWORDS: Final = frozenset(("and", "or", "not", "in", "true", "false", "null", "none", "if", "else"))
_ARITHMETIC: Final = "*/%-"
_PLAIN: Final = re.compile(r"(?=.*\w)[\w .,'!?@-]{1,40}")
"""Matches a text of a manifest that counts as a word."""


@dataclass(frozen=True)
class Mined:
    """The findings in one graph.

    Attributes:
        words: texts, the most interesting first: those that conditions compare with, labels of edges, names of nodes
            and tools, then the manifest's own.
        numbers: those that conditions compare with, each with its neighbours.
        reads: the shape of what expressions, templates and code read.
        compared: the values that what is at a path of `reads` is compared with; "" if it is used as a text.
        written: the keys of mappings that code makes.
        read_by_code: the names at the beginning of `reads` that code looks up.
    """

    words: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    reads: Reads = field(default_factory=dict)
    compared: Mapping[tuple[str, ...], Sequence[Any]] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    read_by_code: frozenset[str] = frozenset()

    @cached_property
    def texts(self) -> Mapping[str, Sequence[str]]:
        """The texts that something is compared with, by its name, whatever it is part of."""
        found: dict[str, list[str]] = {}
        for path, values in self.compared.items():
            known = found.setdefault(path[-1], [])
            known += [each for each in values if each and isinstance(each, str) and each not in known]
        return found


def mined(graph: Graph, further: tuple[Path, ...] = ()) -> Mined:
    """Return what a graph reads. `further` are files of its code that its manifest does not lead to."""
    called = graph.vocabulary().names if graph.vocabulary is not None else {}
    return _mined(
        tuple(dict.fromkeys((*graph.sources, *further))),
        tuple(node.name for node in graph.nodes),
        tuple(edge.condition for edge in graph.edges if edge.condition),
        tuple(str(name) for names in called.values() for name in names),
    )


@lru_cache(64)
def _mined(
    sources: tuple[Path, ...], names: tuple[str, ...], labels: tuple[str, ...], called: tuple[str, ...]
) -> Mined:
    found = Found()
    files = [path for path in sources if path.is_file()]
    texts: list[str] = []
    for path in files:
        if path.suffix != ".py":
            texts += _scalars(_value(path), {*names, *labels}, found)
    expressions = [text for text in (*labels, *texts) if _read_text(text, found)]
    by_others = set(found.reads)
    for path in _modules(files, texts):
        read_python(path, found)
    compared = (*found.words, *(label for label in labels if label not in expressions))
    words = (
        *names,
        *called,
        *(quoted[2] for text in texts for quoted in _QUOTED.finditer(text)),
        *(text for text in texts if text not in expressions),
        *found.keys,
        *found.reads,
    )
    numbers = dict.fromkeys(near for number in found.numbers for near in (number, number - 1, number + 1))
    plain = (word for word in words if _PLAIN.fullmatch(word))
    return Mined(
        tuple(filter(str.strip, dict.fromkeys((*compared, *plain)))),
        tuple(numbers),
        found.reads,
        found.compared,
        frozenset(found.keys),
        frozenset(found.reads.keys() - by_others),
    )


Types = Mapping[str, Any]
"""Schemas by the names of what is known otherwise, such as the fields of the state."""


def shape_schema(found: Mined, *names: str, types: Types | None = None) -> Mapping[str, Any]:
    """Return the schema of a mapping that has all that is read below one of these names; `{}` if nothing is.

    The first may be that of a tool or a node that returns the mapping: what is read of a part of that name counts too
    (`order` of `find_order`). If nothing is read below any, what is read of text that is parsed as JSON counts.
    """
    name, *others = names
    known = (name, *re.split(r"[\W_]+", name), *others, JSON)
    root = next((each for each in known if found.reads.get(each)), None)
    return {} if root is None else _shape(found, found.reads[root], (root,), types or {})


def used_as(found: Mined, name: str) -> Mapping[str, Any]:
    """Return the schema of values that fit the ways in which something of a name is used; `{}` if none are known."""
    below = found.reads.get(name)
    return _shape(found, below, (name,), {}) if below else _leaf(found.compared.get((name,), ()))


def _shape(found: Mined, below: Reads, path: tuple[str, ...], types: Types) -> Mapping[str, Any]:
    if not below:
        return _leaf(found.compared.get(path, ())) or _named(path[-1], found, types)
    inside = {key: _shape(found, part, (*path, key), types) for key, part in below.items()}
    if all(key == "*" or key.isdigit() for key in below):
        most = max((int(key) + 1 for key in below if key.isdigit()), default=1)
        return {"type": "array", "minItems": most, "items": next(iter(inside.values()))}
    return {"type": "object", "properties": inside, "required": list(inside)}


def _leaf(values: Sequence[Any]) -> Mapping[str, Any]:
    """Return the schema of values like these."""
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        examples = [text for text in texts if text]
        return {"type": "string", **({"examples": examples} if examples else {})}
    if any(isinstance(value, list) for value in values):
        return {"type": "array"}
    if not values:
        return {}
    return {"type": "boolean" if all(isinstance(value, bool) for value in values) else "number"}


def _named(name: str, found: Mined, types: Types) -> Mapping[str, Any]:
    """Return the schema of what has a name elsewhere; a text, if nothing is known of it."""
    elsewhere = [value for path, values in found.compared.items() if path[-1] == name for value in values]
    return _leaf(elsewhere) or types.get(name) or {"type": "string"}


def _value(path: Path) -> Any:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        return (
            parse(text, file=str(path), yaml="1.2").value
            if path.suffix in (".yaml", ".yml", ".json")
            else text
        )
    except HarnessError:
        return text


def _scalars(value: Any, targets: set[str], found: Found) -> Iterator[str]:
    """Yield the texts in a value. Keys of a mapping to nodes or labels are what something is compared with."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        is_mapping = isinstance(value, dict) and isinstance(item, dict) and item
        if is_mapping and all(isinstance(each, str) and each in targets for each in item.values()):
            found.words.update(dict.fromkeys(map(str, item)))
        yield from _scalars(item, targets, found)
    if isinstance(value, str):
        yield value


def _read_text(text: str, found: Found) -> bool:
    """Add what an expression, or the placeholders in a text, read and compare; True if it is an expression."""
    quoted: list[str] = []

    def number(match: re.Match[str]) -> str:
        quoted.append(match[2])
        return f"§{len(quoted) - 1}§"

    def value(written: str) -> Any:
        if written.startswith("§"):
            return quoted[int(written.strip("§"))]
        return (
            float(written)
            if "." in written
            else int(written)
            if written.lstrip("-").isdigit()
            else written == "true"
        )

    numbered = _QUOTED.sub(number, text.strip())
    is_expression = len(text) < 1000 and _EXPRESSION.search(numbered) is not None
    parts = [numbered] if is_expression else _PLACEHOLDER.findall(numbered)
    for part in parts:
        for match in _PATH.finditer(part):
            if match["root"].lower() not in _KEYWORDS:
                steps = [
                    step if step[0] != "§" else str(value(step)) for step in _STEPS.findall(match["steps"])
                ]
                parsed = match["root"].lower().startswith("json(")
                parts += [match["root"][len("json(") :]] if parsed else []
                around = part[: match.start()].rstrip()[-1:], part[match.end() :].lstrip()[:1]
                compared = [value(match["literal"])] if match["literal"] else []
                compared += (
                    [1] if is_expression and any(each in _ARITHMETIC for each in around if each) else []
                )
                found.read((JSON if parsed else match["root"], *steps), *compared)
    if is_expression:
        for tested in _TESTED.findall(numbered):
            found.words.update(dict.fromkeys(value(each) for each in re.findall(_TEXT, tested)))
        found.numbers.update(dict.fromkeys(float(one or other) for one, other in _NUMBERS.findall(numbered)))
    return is_expression


_STEPS: Final = re.compile(rf"{_TEXT}|{_NAME}|\d+")


def _modules(files: Sequence[Path], texts: Sequence[str]) -> list[Path]:
    """Return the Python files among these, then those that they import, and that dotted paths name, beside them."""
    folders = list(dict.fromkeys(up for path in files for up in (path.parent, *path.parents[1:4])))
    ahead = [path for path in files if path.suffix == ".py"]
    ahead += [path for text in texts if _DOTTED.fullmatch(text) for path in _beside(text, folders)]
    found: dict[Path, None] = {}
    while ahead:
        path = ahead.pop(0).resolve()
        if path not in found:
            found[path] = None
            for one, other in _IMPORT.findall(path.read_text(encoding="utf-8", errors="replace")):
                ahead += _beside(one or other, [path.parent, *folders])
    return list(found)


_DOTTED: Final = re.compile(rf"{_NAME}(?:[.:]{_NAME})+")
_IMPORT: Final = re.compile(r"^\s*(?:from\s+\.*([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE)


def _beside(dotted: str, folders: Sequence[Path]) -> list[Path]:
    """Return the file of a module, or of the module of an object, below one of the folders."""
    parts = re.split(r"[.:]", dotted)
    for number in range(len(parts), 0, -1):
        for folder in folders:
            for file in (folder.joinpath(*parts[:number]).with_suffix(".py"),
                         folder.joinpath(*parts[:number], "__init__.py")):  # fmt: skip
                if file.is_file():
                    return [file]
    return []
