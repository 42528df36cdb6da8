"""Patching clients that are imported only while requests are intercepted."""

import importlib.util
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.interception.intercept import FAMILIES, intercepted
from harness.interception.interceptor import Interceptor, Place
from harness.interception.messages import PreparedReply, Request, SendResult
from harness.interception.vcrpy_clients import patched_httplib2


class Closed(Interceptor):
    """An interceptor that answers nothing."""

    def claim(self, request: Request) -> PreparedReply | None:
        raise AssertionError(request)

    def begin(self, request: Request) -> Place:
        raise AssertionError(request)

    def received(self, place: Place, sent: SendResult, seconds: float) -> None:
        raise AssertionError(sent)

    def end(self, place: Place, sent: SendResult, seconds: float) -> None:
        raise AssertionError(sent)

    def drop(self, place: Place) -> None:
        raise AssertionError(place)


@pytest.fixture
def patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which the patch of a family, whose module `late_client` is not imported yet, adds its events."""
    (tmp_path / "late_client.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    happened: list[str] = []

    @contextmanager
    def patch(_module: object, _interceptor: Interceptor) -> Iterator[None]:
        assert "late_client" in sys.modules
        happened.append("patched")
        yield
        happened.append("restored")

    monkeypatch.setitem(FAMILIES, "late_client", patch)
    monkeypatch.delitem(sys.modules, "late_client", raising=False)
    return happened


def test_a_family_is_patched_when_its_module_is_imported(patched: list[str]) -> None:
    with intercepted(Closed()):
        assert patched == []
        importlib.import_module("late_client")
        assert patched == ["patched"]
    assert patched == ["patched", "restored"]


def test_a_family_is_patched_though_somebody_looked_for_its_module_before(patched: list[str]) -> None:
    with intercepted(Closed()):
        assert importlib.util.find_spec("late_client") is not None
        importlib.import_module("late_client")
        assert patched == ["patched"]


def test_a_module_that_was_found_inside_and_is_imported_afterwards_is_left_alone(patched: list[str]) -> None:
    with intercepted(Closed()):
        spec = importlib.util.find_spec("late_client")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert patched == []


def test_a_family_that_is_not_imported_is_not_patched(patched: list[str]) -> None:
    finders = list(sys.meta_path)
    with intercepted(Closed()):
        pass
    assert (patched, sys.meta_path) == ([], finders)


@pytest.mark.parametrize(("asked", "logged"), [(logging.NOTSET, False), (logging.INFO, True)])
def test_vcrpy_logs_what_it_does_only_if_asked(
    caplog: pytest.LogCaptureFixture, asked: int, logged: bool
) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(asked, "vcr")
    with patched_httplib2(importlib.import_module("httplib2"), Closed()):
        logging.getLogger("vcr.cassette").info("asked for a response")
    assert any(record.name.startswith("vcr") for record in caplog.records) is logged
    assert logging.getLogger("vcr").level == asked
