"""Validation against pydantic models: one located problem for each mistake."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

from harness.errors import FormatError, ManifestError
from harness.source.document import parse
from harness.source.models import Mistake, describe, mistaken, validate


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Ask(Strict):
    model_config = ConfigDict(title="an ask node")
    type: Literal["ask"]
    prompt: str
    tries: int = 1


class Tell(Strict):
    model_config = ConfigDict(title="a tell node")
    type: Literal["tell"]
    lines: list[str]
    tell: str = ""


class Shout(Strict):
    volume: int


def by_shape(value: Any) -> str | None:
    return {"str": "text", "dict": "mapping"}.get(type(value).__name__)


class Graph(Strict):
    model_config = ConfigDict(title="a graph")
    nodes: list[Annotated[Ask | Tell, Field(discriminator="type")]] = Field(default_factory=list)
    start: str | list[str] | Shout | None = None
    limits: dict[str, int] = Field(default_factory=dict)
    share: float = Field(0.5, gt=0, le=1)
    mode: Literal["fast", "slow"] = "fast"
    voice: Literal["low", "high"] | Shout = "low"
    version: Literal["1.0"] = "1.0"
    when: str = ""
    from_: str = Field("", alias="from")
    words: list[str] = Field(["a"], min_length=1)
    shaped: Annotated[
        Annotated[str, Tag("text")] | Annotated[Shout, Tag("mapping")],
        Discriminator(by_shape, custom_error_type="shape", custom_error_message="expected a text or a shout"),
    ] = ""

    @field_validator("when")
    @classmethod
    def _when(cls, text: str) -> str:
        if text == "never":
            raise ValueError("never is no time")
        if text.endswith("=="):
            raise mistaken(
                Mistake("something is missing", within=(1, len(text)), code="syntax"),
                Mistake("really", hint="look"),
            )
        return text

    @field_validator("limits")
    @classmethod
    def _limits(cls, limits: dict[str, int]) -> dict[str, int]:
        if "bad" in limits:
            raise mistaken(Mistake("a bad limit", ("bad",), on_key=True))
        return limits


def problems(text: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        validate(Graph, parse(text, file="f"))
    return [
        f"{p.span.line}:{p.span.column} {p.code}: {p.message}|{p.hint}"
        for p in caught.value.problems
        if p.span
    ]


def test_a_good_document_becomes_an_instance() -> None:
    graph = validate(Graph, parse("nodes: [{type: ask, prompt: hi}]\nstart: [a]\nfrom: x", file="f"))
    assert graph.nodes == [Ask(type="ask", prompt="hi")]
    assert graph.from_ == "x"


def test_a_part_is_validated_at_its_path() -> None:
    document = parse("x:\n  - {type: ask, prompt: hi, trise: 2}", file="f")
    with pytest.raises(FormatError, match="f:2:29: unknown key 'trise' in an ask node"):
        validate(Ask, document, ("x", 0), error=FormatError)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nods: []", ["1:1 unknown-key: unknown key 'nods' in a graph|did you mean 'nodes'?"]),
        ("form: x", ["1:1 unknown-key: unknown key 'form' in a graph|did you mean 'from'?"]),
        ("from_: x", ["1:1 unknown-key: unknown key 'from_' in a graph|did you mean 'from'?"]),
        (
            "nodes: [{type: ask, promt: x}]",
            [
                "1:9 missing-key: missing key 'prompt' in an ask node|",
                "1:21 unknown-key: unknown key 'promt' in an ask node|did you mean 'prompt'?",
            ],
        ),
        (
            "nodes: [{type: tell, tell: 3, lines: []}]",
            ["1:28 wrong-type: tell: expected text, found the number 3|quote it to make it text"],
        ),
        (
            "nodes: [{type: tell, tell: 2024-01-31, lines: []}]",
            ["1:28 wrong-type: tell: expected text, found a date|quote it to make it text"],
        ),
        (
            "nodes: [{type: tell, tell: [[WORDS]], lines: []}]",
            [
                "1:28 wrong-type: tell: expected text, found a list"
                "|fill in the placeholder [[WORDS]], or quote it to make it text"
            ],
        ),
        (
            "nodes: [{type: aks}]",
            ["1:16 bad-value: type: expected one of ask, tell, found text 'aks'|did you mean 'ask'?"],
        ),
        ("nodes: [{prompt: x}]", ["1:9 missing-key: missing key 'type'|one of ask, tell"]),
        ("nodes: 3", ["1:8 wrong-type: nodes: expected a list, found the number 3|"]),
        ("nodes: [3]", ["1:9 wrong-type: nodes[0]: expected a mapping, found the number 3|"]),
        ("start: 3", ["1:8 wrong-type: start: expected text, a list or a mapping, found the number 3|"]),
        (
            "start: [x, 3]",
            ["1:12 wrong-type: start[1]: expected text, found the number 3|quote it to make it text"],
        ),
        ("voice: {}", ["1:8 missing-key: missing key 'volume'|"]),
        ("voice: {volume: x}", ["1:17 wrong-type: volume: expected a whole number, found text 'x'|"]),
        (
            "voice: hihg",
            ["1:8 bad-value: voice: expected one of low, high, found text 'hihg'|did you mean 'high'?"],
        ),
        ("voice: 3", ["1:8 bad-value: voice: expected one of low, high, found the number 3|"]),
        ("start: {volume: x}", ["1:17 wrong-type: volume: expected a whole number, found text 'x'|"]),
        (
            "start: {volum: 1}",
            [
                "1:8 missing-key: missing key 'volume'|",
                "1:9 unknown-key: unknown key 'volum'|did you mean 'volume'?",
            ],
        ),
        ("limits: {a: 1.5}", ["1:13 wrong-type: a: expected a whole number, found the number 1.5|"]),
        (
            "limits: [a: 1, b: 2]",
            [
                "1:9 wrong-type: limits: expected a mapping, found a list|"
                "its items are `key: value`, and none begins with '- '"
            ],
        ),
        ("limits: [a]", ["1:9 wrong-type: limits: expected a mapping, found a list|"]),
        ("limits: {bad: 1}", ["1:10 bad-value: a bad limit|"]),
        ("share: 0", ["1:8 bad-value: share: must be greater than 0, found the number 0|"]),
        (
            "mode: fsat",
            ["1:7 bad-value: mode: expected one of fast, slow, found text 'fsat'|did you mean 'fast'?"],
        ),
        (
            "version: 1.0",
            ["1:10 bad-value: version: expected 1.0, found the number 1.0|quote it to make it text"],
        ),
        ("when: true", ["1:7 wrong-type: when: expected text, found true|quote it to make it text"]),
        ("when: never", ["1:7 bad-value: never is no time|"]),
        ("when: a ==", ["1:7 bad-value: really|look", "1:10 syntax: something is missing|"]),
        ("words: []", ["1:8 bad-value: words: must have at least 1 item, found an empty list|"]),
        (
            "shaped: 3",
            [
                "1:9 bad-value: shaped: expected a text or a shout, found the number 3|quote it to make it text"
            ],
        ),
        ("shaped: {volme: 3, volume: 1}", ["1:10 unknown-key: unknown key 'volme'|did you mean 'volume'?"]),
        ("[]", ["1:1 wrong-type: expected a mapping, found an empty list|"]),
        (
            "mode: x\nshare: x\nnods: 1",
            [
                "1:7 bad-value: mode: expected one of fast, slow, found text 'x'|",
                "2:8 wrong-type: share: expected a number, found text 'x'|",
                "3:1 unknown-key: unknown key 'nods' in a graph|did you mean 'nodes'?",
            ],
        ),
    ],
)
def test_messages_of_mistakes(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


def test_models_that_ignore_unknown_keys_do() -> None:
    class Loose(BaseModel):
        a: int

    assert validate(Loose, parse("a: 1\nb: 2", file="f")).a == 1


def test_an_ignored_key_may_be_a_misspelled_required_one() -> None:
    class Loose(BaseModel, extra="ignore", title="a thing"):
        prompt: str
        next: str = ""

    with pytest.raises(ManifestError) as caught:
        validate(Loose, parse("promt: 1\nnext: x", file="f"))
    (problem,) = caught.value.problems
    assert (problem.message, problem.hint) == (
        "missing key 'prompt' in a thing",
        "'promt' is not known: did you mean 'prompt'?",
    )


def test_a_missing_key_and_a_value_of_another_type_come_with_an_example() -> None:
    class Plan(Strict, title="a plan"):
        steps: list[str] = Field(examples=["steps: [first, then]"])
        end: str = Field(examples=["end: later"])

    with pytest.raises(ManifestError) as caught:
        validate(Plan, parse("steps: go on, then stop!", file="f"))
    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [
        ("missing key 'end' in a plan", "write end: later"),
        ("steps: expected a list, found text 'go on, then stop!'", "write steps: [first, then]"),
    ]


def test_an_integer_too_large_for_python_to_print_is_described_by_its_length() -> None:
    assert describe(10**5000) == "a number of about 5,000 digits"
