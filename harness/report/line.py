"""The types of a line of results.jsonl (docs/results.md), which `harness.report.reading` validates lines against.

Fields that older versions did not write are not required. Fields that are not listed here are dropped on reading.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from harness.scenario.outcome import Status, Verdict
from harness.units import LARGEST_FIGURE

JSON = Any
Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST_FIGURE)]
Share = Annotated[float, Meta(ge=0, le=1 + 1e-9)]  # tolerates rounding errors of sums


class Check(TypedDict):
    """The result of an expectation."""

    name: str
    passed: bool
    score: Share
    weight: Amount
    expected: JSON
    actual: JSON
    message: str
    where: NotRequired[str | None]


class Error(TypedDict):
    """The error that ended a run."""

    type: str
    code: NotRequired[str | None]
    message: str
    node: NotRequired[str | None]
    where: NotRequired[str | None]
    traceback: NotRequired[list[dict[str, JSON]]]


class Latency(TypedDict):
    """Latencies in virtual seconds."""

    total: Amount | None
    nodes: dict[str, Amount]


class PartUsage(TypedDict):
    """Usage of one model or of one node."""

    llm_calls: Count
    input_tokens: Count | None
    output_tokens: Count | None
    cost: NotRequired[Amount | None]


class Usage(TypedDict):
    """Usage of all models."""

    llm_calls: Count
    input_tokens: Count | None
    output_tokens: Count | None
    cost: Amount | None
    by_model: dict[str, PartUsage]
    by_node: NotRequired[dict[str, PartUsage]]


class GraphParts(TypedDict):
    """The parts of the graph that a run took."""

    nodes: list[str]
    edges: list[list[str]]
    branches: list[str]


class Places(TypedDict, total=False):
    """The locations of a graph's parts: a line number of the manifest, or `file:line`."""

    nodes: list[int | str | None]
    edges: list[int | str | None]
    branches: list[int | str | None]


class Shape(GraphParts):
    """All parts of a graph."""

    kinds: NotRequired[list[str]]
    lines: NotRequired[Places]


class Line(TypedDict):
    """The results of one run of a scenario."""

    format: Literal["harness-results/1"]
    suite: str
    scenario: str
    id: str
    manifest: str
    dialect: str
    agent: str | None
    variant: str | None
    tags: list[str]
    repeat: Count
    seed: int
    status: Status
    verdict: Verdict
    passed: bool
    score: Share | None
    weight: Amount
    latency_penalty: Share
    checks: list[Check]
    path: list[JSON]
    state: JSON
    output: JSON
    error: Error | None
    interrupts: list[JSON]
    warnings: list[str]
    latency: Latency
    wall: Amount | None
    usage: Usage
    calls: list[dict[str, JSON]]
    coverage: GraphParts
    digest: str
    reason: NotRequired[str]
    cause: NotRequired[str]
    fault: NotRequired[str]
    recording: NotRequired[int | None]
    varies: NotRequired[bool]
    seeded: NotRequired[bool]
    now: NotRequired[str]
    expectations: NotRequired[str]
    where: NotRequired[str | None]
    shape: NotRequired[Shape]
    trace: NotRequired[str | None]
