"""The readable part of a file that is not valid, by which its kind is recognized."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from yaml.reader import Reader

from harness.source.document import Document, is_special, shown_path
from harness.source.yaml import load_readable

_LONGEST: Final = 64 * 1024
_MOST_KEYS: Final = 100
"""The number of bytes and of keys that are read: the files of a folder may be large, and most are no manifests."""
_TOP_LEVEL: Final = re.compile(r"^(?=[^\s#])", re.MULTILINE)
_NO_QUOTES: Final = str.maketrans("", "", "\"'")
_OBJECT: Final = re.compile(r'\s*\{[ \t]*\r?\n([ \t]*)(?=")')


class Readable(NamedTuple):
    """The readable content of a file, as a document without the locations in it: a mapping, a list, or None.

    `whole` is True if only keys are wrong (given twice, or not text), and all other data is in the document.
    """

    document: Document
    whole: bool


def readable_part(path: Path) -> Readable:
    """Return the readable part of a file, as of YAML or JSON.

    Each key at the top level is also read by itself: as it is, or with tabs as spaces, without tabs, without quotes.
    """
    text = _beginning(path)
    value, whole = load_readable(text)
    for part in _parts(text):
        untabbed = part.replace("\t", "")
        for reading in (part.replace("\t", "  "), untabbed, untabbed.translate(_NO_QUOTES)):
            found, valid = load_readable(reading)
            value = _merged(value, found)
            if valid and "\t" not in part:
                break
    value = value if isinstance(value, dict | list) else None
    return Readable(Document(shown_path(path), value, text, (0, 0, None)), whole)


def _beginning(path: Path) -> str:
    """Return the beginning of a file, without what is no text; "" if it cannot be read."""
    data = b""
    with suppress(OSError, ValueError):  # ValueError: no file can have this name
        if not is_special(path):
            with path.open("rb") as stream:
                data = stream.read(_LONGEST)
    return Reader.NON_PRINTABLE.sub("", data.decode("utf-8-sig", errors="ignore"))


def _parts(text: str) -> Sequence[str]:
    """Split a text where its keys at the top level begin, by their indentation."""
    json = _OBJECT.match(text)
    if json is None:
        return _TOP_LEVEL.split(text, _MOST_KEYS)
    keys = re.compile(rf'^{json[1]}(?=")', re.MULTILINE)
    return ["{" + part for part in keys.split(text[json.start(1) :], _MOST_KEYS)]


def _merged(first: Any, second: Any) -> Any:
    """Return the better of two readings of a value: the first, or a mapping; of two mappings, all keys of both."""
    if isinstance(first, dict) and isinstance(second, dict):
        return {**second, **{key: _merged(value, second.get(key)) for key, value in first.items()}}
    return second if first is None or isinstance(second, dict) else first
