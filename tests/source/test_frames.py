"""The frames of an exception that are in user code."""

import importlib.util
import json
from pathlib import Path

import pytest

from harness.errors import ManifestError
from harness.source.document import read
from harness.source.frames import frames, own_frames

MODULE = """\
import json

def outer(text):
    return inner(text)

def inner(text):
    return json.loads(text)

def chained(text):
    try:
        inner(text)
    except ValueError as error:
        raise KeyError("no text") from None

def deeper(depth):
    return deeper(depth + 1)
"""


def raised(folder: Path, function: str, given: object) -> BaseException:
    (folder / "mine.py").write_text(MODULE)
    spec = importlib.util.spec_from_file_location("mine", folder / "mine.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(BaseException) as caught:
        getattr(module, function)(given)
    return caught.value


def test_frames_of_the_standard_library_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = raised(tmp_path, "outer", "{")
    mine = [frame for frame in own_frames(error) if frame["file"] == "mine.py"]
    assert [(frame["line"], frame["function"], frame["source"]) for frame in mine] == [
        (4, "outer", "return inner(text)"),
        (7, "inner", "return json.loads(text)"),
    ]
    assert mine[-1]["raised"].startswith("JSONDecodeError: Expecting property name")
    assert any(frame["function"] == "raw_decode" for frame in frames(error))
    json.dumps(frames(error))


def test_causes_come_before_the_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = [f for f in own_frames(raised(tmp_path, "chained", "{")) if f["file"] == "mine.py"]
    assert [frame["line"] for frame in mine] == [11, 7, 13]
    assert mine[1]["raised"].startswith("JSONDecodeError")
    assert mine[2]["raised"] == "KeyError: 'no text'"


def test_few_frames_of_a_recursion_are_kept(tmp_path: Path) -> None:
    assert len(frames(raised(tmp_path, "deeper", 0))) <= 20


def test_frames_inside_an_extension_module_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "cut_off.yaml").write_text('a: "b')
    with pytest.raises(ManifestError) as caught:
        read(tmp_path / "cut_off.yaml")
    assert not [frame for frame in own_frames(caught.value) if frame["file"].endswith(".pyx")]
