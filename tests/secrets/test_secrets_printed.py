"""Text printed during a run has no secrets, by any way of output, and no reference cycles are left behind."""

from __future__ import annotations

import gc
import sys
from weakref import ref

import pytest

from harness.secrets import Secrets
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


KEY = "sk-live-4f9a8b7c6d5e4f3a"
KNOWN = Secrets({"MY_KEY": KEY})
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize("at", range(1, len(KEY)))
def test_a_secret_in_two_flushed_pieces_is_not_shown(at: int, capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(KNOWN.text):
        print("open", KEY[:at], end="", flush=True)
        print(KEY[at:], "now", flush=True)
    shown = capsys.readouterr().out
    assert (KEY[:6] in shown, KEY[-6:] in shown, shown.endswith(" now\n")) == (False, False, True)


def test_a_value_that_is_printed_after_its_name_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(KNOWN.text):
        for piece in ("password: ", "hunter22xy", "\n"):
            print(piece, end="", flush=True)
    assert capsys.readouterr().out == "password: <secret:password>\n"


def test_a_key_that_is_printed_line_by_line_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(KNOWN.text):
        for line in ("before", *PEM.splitlines(), "after"):
            print(line, flush=True)
    assert capsys.readouterr().out == "before\n<secret:private_key>\nafter\n"


def test_a_line_in_many_pieces_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    with redacted_streams(KNOWN.text):
        for _ in range(5000):
            print(".", end="", flush=True)
        print()
    assert capsys.readouterr().out == "." * 5000 + "\n"
