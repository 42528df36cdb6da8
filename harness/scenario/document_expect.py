"""The pydantic models of `expect`: one key per check, in the order of the table in the format's documentation.

That of `explore` has some of its keys. Sources: docs/scenario-format.md, "Expectations", and docs/explore.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, Tag, WithJsonSchema, create_model, model_validator

from harness.errors import Span
from harness.graph.effects import EFFECTS, EXPECTED_KINDS
from harness.scenario.checks import calls as call_checks
from harness.scenario.checks import conditions as own_checks
from harness.scenario.checks import ending as end_checks
from harness.scenario.checks import path as path_checks
from harness.scenario.checks.check import Check, checks_of
from harness.scenario.document_judge import CheckWeight, Judge, complete_judges
from harness.scenario.mentions import Mention
from harness.scenario.model import Allowed, Expectations, Exploration
from harness.source.display import did_you_mean
from harness.source.document import Document
from harness.source.models import Mistake, describe, mistaken
from harness.world.field_types import (
    EXPECTED_VALUE,
    LEFT_OUT,
    Count,
    Dotted,
    JSONSchema,
    Matcher,
    MatcherMapping,
    Name,
    Seconds,
    Strict,
    by_shape,
    cel,
)

SEEN: Final = ("state", "output", "path", "calls", "visits", "latency", "usage", "error")
"""Variables that the conditions of `checks` can read."""
Bound = Annotated[float, Field(ge=0)]
Step = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[str], Tag("list")],
    by_shape("a node, or a list of the nodes of one superstep"),
]


class Route(Strict):
    """A transition that was taken."""

    model_config = ConfigDict(title="a route")

    from_: str = Field(alias="from", description="A node, or `__start__`.")
    to: str = Field(description="A node, or `__end__`.")


if TYPE_CHECKING:
    _Named = Strict
else:
    _Named = create_model(
        "_Named",
        __base__=Strict,
        **{
            kind: (str, Field(LEFT_OUT, description=f"The {EFFECTS[kind].target} (glob)."))
            for kind in EXPECTED_KINDS
        },
    )


class Call(_Named):
    """An expected call: its kind with the name that was called, and optionally its node, arguments and success."""

    model_config = ConfigDict(title="a call")

    node: str = Field(LEFT_OUT, description="The calling node (glob).")
    args: MatcherMapping = Field(LEFT_OUT, description="The arguments contain these.")
    ok: bool = Field(LEFT_OUT, description="True: the call succeeded. False: it failed.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = self.written(*EXPECTED_KINDS)
        if not kinds:
            raise mistaken(Mistake(f"a call needs one of {', '.join(EXPECTED_KINDS)}", code="missing-key"))
        if len(kinds) > 1:
            message = f"a call has one kind: '{kinds[1]}' cannot be combined with '{kinds[0]}'"
            raise mistaken(Mistake(message, (kinds[1],), True, code="conflicting-keys"))
        return self


def _count(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not whole and not isinstance(value, dict):
        raise mistaken(Mistake(f"expected a count, or a matcher for one, found {describe(value)}"))
    return value


Counted = Annotated[
    Matcher,
    AfterValidator(_count),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "object", EXPECTED_VALUE: True}]}),
]


def _unused(value: bool) -> bool:
    if not value:
        raise mistaken(
            Mistake("'unused' is always checked", hint="write 'allow_unused: true' in the scenario")
        )
    return value


def _call_counts(counts: dict[str, Any]) -> dict[str, Any]:
    wrong = [
        Mistake(
            f"'{key}' is not a kind of call",
            (key,),
            True,
            hint=did_you_mean(key.partition(":")[0], EXPECTED_KINDS),
        )
        for key in counts
        if key.partition(":")[0] not in EXPECTED_KINDS
    ]
    if wrong:
        raise mistaken(*wrong)
    return counts


class ExpectedError(Strict):
    """The failure of a run."""

    model_config = ConfigDict(title="an expected error")

    type: Matcher = Field(LEFT_OUT, description="The name of its type.")
    message: Matcher = Field(LEFT_OUT, description="Its text.")
    node: Matcher = Field(LEFT_OUT, description="The node in which it happened.")


class Latency(Strict):
    """Upper bounds, in virtual seconds."""

    model_config = ConfigDict(title="latency bounds")

    total: Seconds = Field(LEFT_OUT, description="For the whole run; beyond it the latency penalty grows.")
    nodes: dict[str, Seconds] = Field(LEFT_OUT, description="By node, summed over all its visits.")


class UsageBounds(Strict):
    """Upper bounds."""

    model_config = ConfigDict(title="usage bounds")

    input_tokens: Bound = Field(LEFT_OUT, description="Tokens sent.")
    output_tokens: Bound = Field(LEFT_OUT, description="Tokens received.")
    llm_calls: Bound = Field(LEFT_OUT, description="Calls of models.")
    cost: Bound = Field(LEFT_OUT, description="Cost of the calls, in US dollars.")


class Condition(Strict):
    """A CEL condition."""

    model_config = ConfigDict(title="a condition")

    that: Annotated[str, cel(*SEEN)] = Field(description=f"The condition; it can read {', '.join(SEEN)}.")
    name: Name = Field(LEFT_OUT, description="Its name in results.")
    weight: CheckWeight = Field(1.0, description="Its weight in the score.")


class Custom(Strict):
    """A check that is a Python function of the user."""

    model_config = ConfigDict(title="a custom check")

    call: Dotted = Field(description="Dotted path of a Python function, which is called with the run.")
    args: dict[str, Any] = Field(LEFT_OUT, description="Its further arguments, by name.")
    name: Name = Field(LEFT_OUT, description="Its name in results.")
    weight: CheckWeight = Field(1.0, description="Its weight in the score.")


def _weights(weights: dict[str, float]) -> dict[str, float]:
    wrong = [
        Mistake(f"'{key}' is not a check", (key,), True, code="unknown-key", hint=did_you_mean(key, CHECKS))
        for key in weights
        if key not in CHECKS
    ]
    if wrong:
        raise mistaken(*wrong)
    return weights


class StoredItem(Strict):
    """An expected item of a store."""

    model_config = ConfigDict(title="an item of the store")

    namespace: Annotated[list[Name], Field(min_length=1)] = Field(description="Its namespace.")
    key: Name = Field(LEFT_OUT, description="Its key; by default, that of any item in the namespace.")
    value: Matcher = Field(description="Its value matches; `$missing: true`: there is no such item.")


class Expect(Strict):
    """The expectations of a run. Each key is a check."""

    model_config = ConfigDict(title="'expect'")

    status: Annotated[
        Literal["completed", "interrupted", "failed", "timeout", "invalid"], end_checks.status
    ] = Field(
        "completed", description="The status at the end of the run; `invalid`: the manifest is refused."
    )
    path: Annotated[list[Step], path_checks.path] = Field(
        LEFT_OUT, examples=["path: [classify, answer]"], description="The nodes ran in exactly this order."
    )
    path_includes: Annotated[list[str], path_checks.path_includes] = Field(
        LEFT_OUT,
        examples=["path_includes: [classify, answer]"],
        description="These nodes ran, in this order.",
    )
    visits: Annotated[dict[str, Counted], path_checks.visits] = Field(
        LEFT_OUT, examples=["visits: {answer: 2}"], description="Number of runs of each node."
    )
    max_visits: Annotated[dict[str, Count], path_checks.max_visits] = Field(
        LEFT_OUT, description="Maximum number of runs of each node."
    )
    never: Annotated[list[str], path_checks.never] = Field(
        LEFT_OUT, examples=["never: [answer]"], description="None of these nodes ran."
    )
    routes: Annotated[list[Route], path_checks.routes] = Field(
        LEFT_OUT,
        examples=["routes: [{from: classify, to: answer}]"],
        description="These transitions were taken.",
    )
    state: Annotated[Matcher, own_checks.state] = Field(LEFT_OUT, description="The final state matches.")
    store: Annotated[list[StoredItem], own_checks.store] = Field(
        LEFT_OUT,
        examples=["store: [{namespace: [memories, ada], value: {text: {$contains: tea}}}]"],
        description="The store has these items (LangGraph).",
    )
    output: Annotated[Matcher, own_checks.output] = Field(LEFT_OUT, description="The result matches.")
    state_schema: Annotated[JSONSchema, own_checks.state_schema] = Field(
        LEFT_OUT, description="The final state is valid under this JSON Schema."
    )
    output_schema: Annotated[JSONSchema, own_checks.output_schema] = Field(
        LEFT_OUT, description="The result is valid under this JSON Schema."
    )
    calls: Annotated[list[Call], call_checks.calls] = Field(
        LEFT_OUT, examples=["calls: [{tool: find_order}]"], description="These calls were made."
    )
    calls_order: Literal["in_order", "any", "exact"] = Field(
        "in_order", description="`calls` are a subsequence of all calls, in any order, or all calls."
    )
    never_calls: Annotated[list[Call], call_checks.never_calls] = Field(
        LEFT_OUT, examples=["never_calls: [{tool: find_order}]"], description="No call matches any of these."
    )
    call_counts: Annotated[dict[str, Counted], AfterValidator(_call_counts), call_checks.call_counts] = Field(
        LEFT_OUT,
        examples=["call_counts: {llm: 3}"],
        description="Number of calls, by kind or by `kind:name`.",
    )
    error: Annotated[ExpectedError, end_checks.error] = Field(
        LEFT_OUT, examples=["error: {message: {$contains: timed out}}"], description="The failure."
    )
    interrupt: Annotated[Matcher, end_checks.interrupt] = Field(
        LEFT_OUT, description="The values with which the run paused, in order."
    )
    latency: Annotated[Latency, end_checks.latency] = Field(
        LEFT_OUT, examples=["latency: {total: 2}"], description="Upper bounds in virtual seconds."
    )
    usage: Annotated[UsageBounds, end_checks.usage] = Field(
        LEFT_OUT,
        examples=["usage: {llm_calls: 2}"],
        description="Upper bounds on tokens, calls and cost of models.",
    )
    warnings: Annotated[list[Matcher], end_checks.warnings] = Field(
        LEFT_OUT, description="These warnings were raised."
    )
    never_warnings: Annotated[list[Matcher], end_checks.never_warnings] = Field(
        LEFT_OUT, description="No such warning was raised."
    )
    checks: Annotated[list[Condition], own_checks.condition] = Field(
        LEFT_OUT, examples=["checks: [{that: 'state.count > 2'}]"], description="CEL conditions."
    )
    custom: Annotated[list[Custom], own_checks.custom] = Field(
        LEFT_OUT,
        examples=["custom: [{call: my_checks.polite}]"],
        description="Python functions that score the run.",
    )
    judge: Annotated[
        Annotated[list[Judge], Tag("list")] | Annotated[Judge, Tag("mapping")],
        by_shape("a judge, or a list of judges"),
        own_checks.judge,
    ] = Field(
        LEFT_OUT,
        examples=["judge: [{rubric: It is polite., model: gpt-4o}]"],
        description="Models that grade the output: one judge, or a list.",
    )
    unused: Annotated[bool, AfterValidator(_unused), end_checks.unused] = Field(
        LEFT_OUT, description="All stubs are used up; always checked."
    )
    weights: Annotated[dict[str, CheckWeight], AfterValidator(_weights)] = Field(
        LEFT_OUT, description="The weight of checks, by key; 1 unless given."
    )

    def spec(self, at: Document, folder: Path) -> Expectations:
        """Return the expectations written at `at` in a file of this folder.

        Values stay as written, since results show them; only judges are completed to a list in which each has a
        model.

        Raises:
            FormatError: a judge has no model, or a prompt that cannot be used.
        """
        values = {key: value for key, value in at.value.items() if key != "weights"}
        prompts: Mapping[int, str] = {}
        if "judge" in values:
            values["judge"], prompts = complete_judges(check_items(at, "judge"), folder)
        return Expectations(values, self.weights or {}, dict(_spans(at)), prompts)


def part_of_expect(at: Document, keys: Sequence[str]) -> Expectations:
    """Return the expectations that are written at `at` under these keys."""
    return Expectations({key: at.value[key] for key in keys if key in at.value}, {}, dict(_spans(at)))


CHECKS: Final = checks_of(Expect.model_fields, apart=("weights",))
"""The checks by key, in the order of the format's documentation."""


def checks_in(expect: Mapping[str, Any]) -> Iterator[tuple[str, Check]]:
    """Yield the checks that are written in an `expect` mapping, in the order of `CHECKS`."""
    return ((key, check) for key, check in CHECKS.items() if key in expect)


def expectation_mentions(at: Document) -> Iterator[Mention]:
    """Yield the names in the `expect` mapping at `at`."""
    return (each for key, check in checks_in(at.value) for rule in check.names for each in rule(key, at))


def check_items(at: Document, key: str) -> list[Document]:
    """Return the items of a check whose items are checks themselves; a single item is a list of one."""
    below = at.at((key,))
    return (
        [below.at((index,)) for index in range(len(below.value))]
        if isinstance(below.value, list)
        else [below]
    )


def _spans(at: Document) -> Iterator[tuple[str, Span]]:
    """Yield the locations of the checks: by key, and by `key[index]` where each item is a check."""
    for key in at.value:
        yield key, at.span((key,))
        if key in CHECKS and CHECKS[key].items:
            yield from ((f"{key}[{index}]", item.span()) for index, item in enumerate(check_items(at, key)))


INVARIANTS: Final = (
    *("never", "never_calls", "max_visits", "checks", "output_schema", "state_schema", "call_counts"),
    *("usage", "latency", "custom"),
)
"""The checks that make sense for any run."""


class AllowedFailure(Strict):
    """A failure that is fine."""

    model_config = ConfigDict(title="an allowed failure")

    type: Name = Field(LEFT_OUT, description="The name of its type.")
    message: str = Field(LEFT_OUT, description="A part of its text.")
    node: Name = Field(LEFT_OUT, description="The node in which it happens (glob).")


if TYPE_CHECKING:
    _Invariants = Expect
else:
    _Invariants = create_model(
        "_Invariants",
        __base__=Strict,
        **{key: (Expect.model_fields[key].annotation, Expect.model_fields[key]) for key in INVARIANTS},
    )


class Explore(_Invariants):
    """The rules that no run may break, whatever the world answers. Failed and paused runs are judged, too."""

    model_config = ConfigDict(title="'explore'")

    allow: list[AllowedFailure] = Field(
        LEFT_OUT, examples=["allow: [{type: RateLimitError}]"], description="Failures that are fine."
    )

    def exploration(self, at: Document) -> Exploration:
        """Return what is written at `at`."""
        allowed = tuple(Allowed(each.type, each.message, each.node) for each in self.allow or ())
        return Exploration(part_of_expect(at, INVARIANTS), allowed)
