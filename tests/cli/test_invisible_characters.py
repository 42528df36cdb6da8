"""Characters that nobody sees, in the reply of a model: every text for people shows them, as escapes."""

import unicodedata
from pathlib import Path

from tests.cli.fixtures import RunCommand, WriteFile

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "pay")
HIDDEN = f"ok{TAGS}\u200b\u2060\u202e\ufeff\u00ad\u3164\u034f\U000e0101\x1b"


def unseen(text: str) -> set[str]:
    """Return the characters of a text that are drawn as nothing; line ends and tabs are none."""
    return {each for each in text if unicodedata.category(each)[0] == "C" and each not in "\r\n\t"} | (
        set(text) & set(HIDDEN) - set("ok")
    )


def test_every_text_for_people_shows_what_a_reply_hides(harness: RunCommand, write: WriteFile) -> None:
    write("agent.py", f"def answer(question):\n    return {HIDDEN!r}\n")
    write(
        "a.scenario.yaml",
        "harness: 1\nmanifest: agent.py:answer\nscenarios:\n"
        "  - {name: answers, input: hello, expect: {output: no}}\n",
    )
    told = harness("run", ".", GITHUB_ACTIONS="true").stdout
    trace = harness("trace", "a.scenario.yaml::answers", "-v").stdout
    written = {name: Path("reports/latest", name).read_text("utf-8") for name in ("summary.md", "junit.xml")}
    annotation = next(line for line in told.splitlines() if line.startswith("::error"))
    for text in (told, trace, annotation, *written.values()):
        assert r"\u000e0070\u000e0061\u000e0079" in text.replace("\\\\", "\\").lower()
        assert unseen(text) == set()
