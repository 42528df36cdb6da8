"""Properties of all recordings: they are read back unchanged, and broken files raise only CassetteBroken."""

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import CassetteBroken
from harness.interception.messages import Request, Response
from harness.interception.patches import kept_request_headers, kept_response_headers
from harness.recording.folder import CassetteFolder
from harness.recording.interactions import Exchange, HumanReply, Interaction, Recording, RecordingMetadata
from harness.recording.matching import Matcher
from tests.fuzz.mutations import mutated

C_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

ODD = [
    "", " ", "yes", "null", "~", "1e3", "2026-01-31", "<<", "=", "0x1F", "1:30", "---", "...", "k" * 1500, "# no",
    "a: b", "\n", "a\n\nb\n\n", " a\n b", "a \nb", "a\r\nb", "data: {}\r\n\r\n", "\ta", "\ufeff", "\x85", "\u2028",
    "\x1b[0m", "😀", "!!binary x", "*a", "&a", "%x", "@x", "`x", "'", '"', "\\", "[", "{", "- a", "? a", ".inf",
]  # fmt: skip
TEXTS = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TOKENS = st.text("abcxyz0123456789-", min_size=1, max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=4)
BODIES = st.binary(max_size=40) | TEXTS.map(str.encode) | OBJECTS.map(json.dumps).map(str.encode)
SECONDS = st.floats(0, 1e6)
TURNS = st.none() | st.integers(1, 9)
HEADERS = st.dictionaries(TOKENS, TEXTS, max_size=3).map(kept_request_headers)
REQUESTS = st.builds(Request, TEXTS.filter(bool), TEXTS.filter(bool), HEADERS, BODIES)
RESPONSES = st.builds(
    Response,
    st.integers(100, 599),
    TEXTS,
    st.lists(st.tuples(TOKENS, TEXTS), max_size=4).map(kept_response_headers),
    BODIES,
)
CHUNKS = st.lists(SECONDS, max_size=3).map(tuple)
ANSWERED = st.builds(Interaction, REQUESTS, RESPONSES, TURNS, SECONDS, CHUNKS, TEXTS)
UNANSWERED = st.builds(
    Interaction,
    st.builds(Request, TEXTS, TEXTS, st.just({}), BODIES),
    st.none(),
    TURNS,
    SECONDS,
    CHUNKS,
    TEXTS,
)
EXCHANGES = st.builds(Exchange, OBJECTS, st.lists(OBJECTS, max_size=2).map(tuple), TURNS, SECONDS)
BY_NAME = st.dictionaries(TEXTS, TEXTS, max_size=2)
RECORDINGS = st.builds(
    Recording,
    st.lists(ANSWERED | UNANSWERED, max_size=3).map(tuple),
    st.dictionaries(TEXTS, st.lists(EXCHANGES, min_size=1, max_size=2).map(tuple), max_size=2),
    st.lists(st.builds(HumanReply, TEXTS, JSON, JSON, TURNS), max_size=2).map(tuple),
    st.builds(RecordingMetadata, TEXTS, st.just("") | st.dates().map(str), BY_NAME, BY_NAME, BY_NAME),
)


def told(recording: Any) -> Any:
    """Return it without lines, and with request bodies parsed, since JSON is written over several lines."""
    matcher = Matcher()

    def http(one: Any) -> Any:
        rest = (one.request.method, one.request.url, one.request.headers, one.response, one.turn)
        return (*rest, matcher.key(one.request), one.duration_s, one.chunks_s, one.failure)

    def mcp(one: Any) -> Any:
        return (one.sent, one.received, one.turn, one.duration_s)

    servers = {name: [mcp(one) for one in exchanges] for name, exchanges in recording.mcp.items()}
    return [http(one) for one in recording.http], servers, recording.human, recording.metadata


@settings(max_examples=50)
@given(st.dictionaries(st.integers(1, 4), RECORDINGS, max_size=2))
def test_cassettes_are_read_back_unchanged_by_every_yaml_loader(
    recordings: Any,
) -> None:
    with TemporaryDirectory() as root:
        folder = CassetteFolder(Path(root), "a")
        assert folder.save(recordings) is bool(recordings)
        assert folder.numbers() == sorted(recordings)
        loaded = {
            number: recording for number in recordings if (recording := folder.load(number)) is not None
        }
        assert {number: told(recording) for number, recording in loaded.items()} == {
            number: told(recording) for number, recording in recordings.items()
        }
        assert folder.save(loaded) is False
        for path in Path(root).rglob("*.yaml"):
            text = path.read_text(encoding="utf-8")
            assert yaml.load(text, yaml.SafeLoader) == yaml.load(text, C_LOADER)


ASKED = Request("POST", "https://a.example/", {"x": "1"}, b'{"a": [1]}')
WHOLE = Recording(
    (
        Interaction(ASKED, Response(200, "OK", (), b"\xff\n"), 1, 0.5),
        Interaction(Request("GET", "https://a.example/"), None, 1, 0.5, failure="ConnectError: refused"),
        Interaction(ASKED, Response(200, "OK", (("a", "1"),), b"a\n\nb"), 1, 0.5, (0.25,)),
    ),
    {"w": (Exchange({"jsonrpc": "2.0", "id": 1}, ({"result": {}},), 1, 0.5),)},
    (HumanReply("ask", {"q": "?"}, "yes", 1),),
    RecordingMetadata("s", "2026-01-31", {"a": "b"}, {"a": "1"}, {"A": "b"}),
)


@pytest.mark.parametrize("seed", range(4))
def test_files_with_mistakes_in_them_are_read_or_refused(tmp_path: Path, seed: Any) -> None:
    draw = random.Random(seed)
    folder = CassetteFolder(tmp_path, "a")
    folder.save({1: WHOLE})
    whole = {path: path.read_bytes() for path in sorted((tmp_path / "a").iterdir())}
    refused = []
    for _ in range(150):
        path = draw.choice(list(whole))
        path.write_bytes(mutated(whole[path].decode(), draw))
        try:
            folder.load()
        except CassetteBroken as broken:
            refused.append(broken)
        path.write_bytes(whole[path])
    assert len(refused) > 20
    assert all(broken.span and broken.span.line >= 1 for broken in refused)


@settings(max_examples=100)
@given(
    st.binary(max_size=200)
    | TEXTS.map(str.encode)
    | st.text("a:-[]{}&*!|>'\"\n #,", max_size=60).map(str.encode)
)
def test_any_bytes_are_read_or_refused(data: Any) -> None:
    with TemporaryDirectory() as root:
        for name in ("http", "mcp", "meta"):
            path = Path(root, name, f"{name}.yaml")
            path.parent.mkdir()
            path.write_bytes(data)
            with pytest.raises(CassetteBroken):
                CassetteFolder(Path(root), name).load()
