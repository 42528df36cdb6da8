"""Text printed during a run has no secrets, by any way of output, and no reference cycles are left behind."""

from __future__ import annotations

import gc
import sys
from weakref import ref

import pytest

from harness.secrets.output import redacted_streams


def without_secret(text: str) -> str:
    return text.replace("sesame", "…")


def test_a_secret_printed_in_several_writes_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(without_secret):
        print("open ses", end="")
        print("ame")
    assert capsys.readouterr().out == "open …\n"


def test_a_secret_written_as_bytes_in_several_writes_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(without_secret):
        for piece in (b"caf\xc3", b"\xa9, open ses", b"ame\n"):
            sys.stdout.buffer.write(piece)
    assert capsys.readouterr().out == "café, open …\n"


def test_closing_the_buffer_does_not_close_the_stream(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(without_secret):
        sys.stdout.buffer.close()
        sys.stdout.buffer.write(b"open sesame\n")
        print("sesame")
    assert capsys.readouterr().out == "open …\n…\n"


def test_the_streams_are_freed_at_the_end_of_the_block(capsys: pytest.CaptureFixture[str]) -> None:
    """Check that nothing is left to the garbage collector: Ctrl-C is lost if it closes a stream."""
    gc.disable()
    try:
        with redacted_streams(without_secret):
            stream = ref(sys.stdout)
            sys.stdout.buffer.write(b"a line\n")
        assert stream() is None
    finally:
        gc.enable()
    assert capsys.readouterr().out == "a line\n"
