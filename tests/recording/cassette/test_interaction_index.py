"""The choice among several recorded interactions that match."""

import json
from typing import Any

from harness.interception.messages import Request
from harness.recording.interactions import Interaction
from harness.recording.matching import Matcher
from harness.recording.recorder import InteractionIndex
from harness.recording.scrubber import Scrubber

UUIDS = ("1b4e28ba-2fa1-11d2-883f-0016d3cca427", "6fa459ea-ee8a-3ca4-894e-db77e160355e")


def asked(content: Any, port: Any = 80) -> Any:
    body = json.dumps({"messages": [{"role": "user", "content": content}]}).encode()
    return Request("POST", f"http://localhost:{port}/v1/chat", {"content-type": "application/json"}, body)


def found_among(*requests: Any, turns: Any = ()) -> Any:
    turns = turns or [1] * len(requests)
    recorded = [Interaction(request, None, turn) for request, turn in zip(requests, turns, strict=True)]
    return InteractionIndex(recorded, Matcher(), Scrubber()).find


def test_the_first_that_was_not_used_answers() -> None:
    find = found_among(asked("a"), asked("b"), asked("a"))
    assert find(asked("a"), 1, set()) == 0
    assert find(asked("a"), 1, {0}) == 2
    assert find(asked("a"), 1, {0, 2}) is None


def test_a_match_with_equal_ids_comes_first() -> None:
    find = found_among(*(asked(f"order {uuid}") for uuid in UUIDS))
    assert find(asked(f"order {UUIDS[1]}"), 1, set()) == 1
    assert find(asked("order 00000000-0000-4000-8000-000000000000"), 1, set()) == 0


def test_a_match_with_the_same_port_comes_first() -> None:
    find = found_among(asked("a", port=8001), asked("a", port=8002))
    assert find(asked("a", port=8002), 1, set()) == 1
    assert find(asked("a", port=9000), 1, set()) == 0


def test_those_of_other_turns_do_not_answer_unless_they_are_of_any() -> None:
    find = found_among(asked("a"), asked("a"), turns=[2, None])
    assert find(asked("a"), 1, set()) == 1
    assert find(asked("a"), 2, set()) == 0


def test_a_placeholder_matches_any_text_which_is_a_secret_from_then_on() -> None:
    scrubber = Scrubber()
    recorded = [Interaction(asked("My password is <secret:password>."), None, 1)]
    find = InteractionIndex(recorded, Matcher(), scrubber).find
    assert find(asked("My password is hunter2-4711-x."), 1, set()) == 0
    assert scrubber.secrets.text("it was hunter2-4711-x") == "it was <secret:password>"
    assert find(asked("Your password is hunter2-4711-x."), 1, set()) is None
