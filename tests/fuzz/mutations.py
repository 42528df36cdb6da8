"""Random mutations of YAML and JSON files, as by editing mistakes, truncation and damaged bytes."""

from __future__ import annotations

import copy
import random
from json import dumps
from typing import Any

import yaml

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 3.5, 10**30, "", " ", "${X}", "__end__", "state.", "a" * 3000,
    [], {}, [[]], [None], {"": None}, {"$any": True}, {"$foo": 1}, "\u0000", "é\u202e", float("nan"),
)  # fmt: skip


ODD_PREFIXES = ("  ", "\t", "- ", "? ", ": ", "&a ", "*a ", "!!python/object:os.system ")


def mutated(text: str, draw: random.Random, *, json: bool = False) -> bytes:
    """Return the text after one mutation of its lines or bytes, or one to three of its parsed data."""
    if draw.random() < 0.5:
        return _mutated_text(text, draw)
    data = yaml.safe_load(text)
    for _ in range(draw.randint(1, 3)):
        data = _mutated_data(data, draw)
    if json:
        return dumps(data, indent=2).encode()
    return yaml.safe_dump(data, allow_unicode=True, sort_keys=False).encode("utf-8", "surrogatepass")


def _mutated_text(text: str, draw: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    kind = draw.randrange(8)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[draw.randrange(len(lines))])
    elif kind == 2:
        lines[at] = draw.choice(ODD_PREFIXES) + lines[at]
    elif kind == 3:
        return text.encode()[: draw.randrange(len(text))]
    elif kind == 4:
        data = bytearray(text.encode())
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        return bytes(data)
    elif kind == 5:
        words = lines[at].split(" ")
        draw.shuffle(words)
        lines[at] = " ".join(words)
    elif kind == 6:
        lines[at] = lines[at].replace(draw.choice("{}[]:,'\""), draw.choice("{}[]:,'\"# "), 1)
    else:
        lines[at:at] = ["x: &x [1]\n"] + ["y: [*x, *x]\n"] * draw.randint(1, 3)
    return "".join(lines).encode()


def _mutated_data(data: Any, draw: random.Random) -> Any:
    data = copy.deepcopy(data)
    places = list(_items(data))
    if not places:
        return draw.choice(ODD_VALUES)
    holder, key = draw.choice(places)
    kind = draw.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = copy.deepcopy(draw.choice(ODD_VALUES))
    elif kind == 2:
        other, other_key = draw.choice(places)
        holder[key] = copy.deepcopy(other[other_key])
    elif kind == 3 and isinstance(holder, dict):
        holder[_misspelt(str(key), draw)] = holder.pop(key)
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        holder[key] = [holder[key]] if draw.random() < 0.5 else {"x": holder[key]}
    return data


def _items(data: Any) -> Any:
    if isinstance(data, (dict, list)):
        for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
            yield data, key
            yield from _items(value)


def _misspelt(word: str, draw: random.Random) -> str:
    at = draw.randrange(len(word) + 1)
    return word[:at] + draw.choice("xyz_-") + word[at + draw.randrange(2) :]
