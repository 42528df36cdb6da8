"""The pydantic models of `expect`: one key per check, in the order of the table in the format's documentation.

Source: docs/scenario-format.md, "Expectations".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, Tag, WithJsonSchema, model_validator

from harness.errors import FormatError, Problem, Span
from harness.judges.library import METRICS, project_prompts, read_prompt
from harness.scenario.field_types import (
    LEFT_OUT,
    Count,
    Dotted,
    JSONSchema,
    Matcher,
    MatcherMapping,
    Name,
    PromptFile,
    Seconds,
    Share,
    Strict,
    by_shape,
    cel,
)
from harness.scenario.model import ITEMIZED, Expectations
from harness.settings import Settings, load_settings
from harness.source.display import clip, did_you_mean
from harness.source.document import Document
from harness.source.models import Mistake, describe, mistaken
from harness.units import LARGEST_FIGURE


def complete_judges(
    items: Sequence[Document], folder: Path
) -> tuple[list[Mapping[str, Any]], dict[int, str]]:
    """Return the judges written at `items`, each with a model, and by index the prompts that replace the library's.

    `folder` is the folder of the scenario file.

    Raises:
        FormatError: a judge has no model, or a prompt that cannot be used.
    """
    if all("rubric" in item.value and "model" in item.value for item in items):
        return [item.value for item in items], {}
    settings = load_settings(folder)
    prompts: dict[int, str] = {}
    problems: list[Problem] = []
    for index, item in enumerate(items):
        try:
            found = _prompt(item, folder, settings)
        except FormatError as error:
            problems += error.problems
        else:
            prompts |= {index: found} if found is not None else {}
        if "model" not in item.value and not settings.judge_model:
            hint = "or set judge_model in [tool.harness]"
            problems.append(Problem("missing-key", "missing key 'model' in a judge", item.span(), hint))
    if problems:
        raise FormatError(problems)
    return [_with_model(item.value, settings.judge_model) for item in items], prompts


def _with_model(item: Mapping[str, Any], default: str) -> Mapping[str, Any]:
    return item if "model" in item else {**item, "model": default}


def _prompt(item: Document, folder: Path, settings: Settings) -> str | None:
    """Return the prompt that replaces the library's; None if there is none, or the judge has a rubric."""
    if "metric" not in item.value:
        return None
    if "prompt" in item.value:
        return read_prompt(folder / item.value["prompt"]["file"], item.span(("prompt", "file"))).text
    own = project_prompts(settings.judge_prompts).get(item.value["metric"])
    return own.text if own is not None else None


NOT_CHECKS: Final = ("weights", "calls_order")
SEEN: Final = ("state", "output", "path", "calls", "visits", "latency", "usage", "error")
"""Variables that the conditions of `checks` can read."""
CALL_KINDS: Final = ("llm", "tool", "mcp", "http", "agent", "script", "human", "retrieval")

Bound = Annotated[float, Field(ge=0)]
CheckWeight = Annotated[float, Field(ge=0, le=LARGEST_FIGURE)]
Step = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[str], Tag("list")],
    by_shape("a node, or a list of the nodes of one superstep"),
]


class Route(Strict):
    """A transition that was taken."""

    model_config = ConfigDict(title="a route")

    from_: str = Field(alias="from", description="A node, or `__start__`.")
    to: str = Field(description="A node, or `__end__`.")


class Call(Strict):
    """An expected call: its kind with the name that was called, and optionally its node, arguments and success."""

    model_config = ConfigDict(title="a call")

    llm: str = Field(LEFT_OUT, description="The model (glob).")
    tool: str = Field(LEFT_OUT, description="The tool (glob).")
    mcp: str = Field(LEFT_OUT, description="The tool of an MCP server (glob).")
    http: str = Field(LEFT_OUT, description="The URL (glob).")
    agent: str = Field(LEFT_OUT, description="The agent (glob).")
    script: str = Field(LEFT_OUT, description="The script's node (glob).")
    human: str = Field(LEFT_OUT, description="The node that asked (glob).")
    retrieval: str = Field(LEFT_OUT, description="The retrieval node (glob).")
    node: str = Field(LEFT_OUT, description="The calling node (glob).")
    args: MatcherMapping = Field(LEFT_OUT, description="The arguments contain these.")
    ok: bool = Field(LEFT_OUT, description="True: the call succeeded. False: it failed.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = self.written(*CALL_KINDS)
        if not kinds:
            raise mistaken(Mistake(f"a call needs one of {', '.join(CALL_KINDS)}", code="missing-key"))
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
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "object"}]}),
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
            hint=did_you_mean(key.partition(":")[0], CALL_KINDS),
        )
        for key in counts
        if key.partition(":")[0] not in CALL_KINDS
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


def _metric(name: str) -> str:
    if name not in METRICS:
        raise mistaken(Mistake(f"unknown metric '{clip(name, 60)}'", hint=did_you_mean(name, METRICS)))
    return name


MetricName = Annotated[
    str, AfterValidator(_metric), WithJsonSchema({"anyOf": [{"enum": list(METRICS)}, {"type": "string"}]})
]


class JudgeKeys(Strict):
    """A question to a judge, and the grade that passes."""

    model_config = ConfigDict(title="a judge")

    metric: MetricName = Field(LEFT_OUT, description="A predefined judge (`harness judges` lists them).")
    rubric: Name = Field(LEFT_OUT, description="Description of a good output, instead of a metric.")
    model: Name = Field(
        LEFT_OUT, description="The model that grades; by default `judge_model` of the settings."
    )
    prompt: PromptFile = Field(LEFT_OUT, description="A prompt that replaces the metric's own.")
    threshold: Share = Field(LEFT_OUT, description="The lowest grade that passes.")

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        given = self.written("metric", "rubric")
        if not given:
            hint = "metrics are listed by `harness judges`"
            raise mistaken(Mistake("a judge needs a metric or a rubric", code="missing-key", hint=hint))
        if len(given) > 1:
            message = "a judge has a metric or a rubric: 'rubric' cannot be combined with 'metric'"
            raise mistaken(Mistake(message, ("rubric",), True, code="conflicting-keys"))
        if self.written("prompt") and given == ["rubric"]:
            message = "'prompt' replaces the prompt of a metric, so it needs 'metric'"
            raise mistaken(Mistake(message, ("prompt",), True, code="conflicting-keys"))
        return self


class Judge(JudgeKeys):
    """A grade that a model gives to the output."""

    weight: CheckWeight = Field(1.0, description="Its weight in the score.")


def _weights(weights: dict[str, float]) -> dict[str, float]:
    checks = [key for key in Expect.model_fields if key not in NOT_CHECKS]
    wrong = [
        Mistake(f"'{key}' is not a check", (key,), True, code="unknown-key", hint=did_you_mean(key, checks))
        for key in weights
        if key not in checks
    ]
    if wrong:
        raise mistaken(*wrong)
    return weights


class Expect(Strict):
    """The expectations of a run. Each key is a check."""

    model_config = ConfigDict(title="'expect'")

    status: Literal["completed", "interrupted", "failed", "timeout", "invalid"] = Field(
        "completed", description="The status at the end of the run; `invalid`: the manifest is refused."
    )
    path: list[Step] = Field(
        LEFT_OUT, examples=["path: [classify, answer]"], description="The nodes ran in exactly this order."
    )
    path_includes: list[str] = Field(
        LEFT_OUT,
        examples=["path_includes: [classify, answer]"],
        description="These nodes ran, in this order.",
    )
    visits: dict[str, Counted] = Field(
        LEFT_OUT, examples=["visits: {answer: 2}"], description="Number of runs of each node."
    )
    max_visits: dict[str, Count] = Field(LEFT_OUT, description="Maximum number of runs of each node.")
    never: list[str] = Field(LEFT_OUT, examples=["never: [answer]"], description="None of these nodes ran.")
    routes: list[Route] = Field(
        LEFT_OUT,
        examples=["routes: [{from: classify, to: answer}]"],
        description="These transitions were taken.",
    )
    state: Matcher = Field(LEFT_OUT, description="The final state matches.")
    output: Matcher = Field(LEFT_OUT, description="The result matches.")
    state_schema: JSONSchema = Field(LEFT_OUT, description="The final state is valid under this JSON Schema.")
    output_schema: JSONSchema = Field(LEFT_OUT, description="The result is valid under this JSON Schema.")
    calls: list[Call] = Field(
        LEFT_OUT, examples=["calls: [{tool: find_order}]"], description="These calls were made."
    )
    calls_order: Literal["in_order", "any", "exact"] = Field(
        "in_order", description="`calls` are a subsequence of all calls, in any order, or all calls."
    )
    never_calls: list[Call] = Field(
        LEFT_OUT, examples=["never_calls: [{tool: find_order}]"], description="No call matches any of these."
    )
    call_counts: Annotated[dict[str, Counted], AfterValidator(_call_counts)] = Field(
        LEFT_OUT,
        examples=["call_counts: {llm: 3}"],
        description="Number of calls, by kind or by `kind:name`.",
    )
    error: ExpectedError = Field(
        LEFT_OUT, examples=["error: {message: {$contains: timed out}}"], description="The failure."
    )
    interrupt: Matcher = Field(LEFT_OUT, description="The values with which the run paused, in order.")
    latency: Latency = Field(
        LEFT_OUT, examples=["latency: {total: 2}"], description="Upper bounds in virtual seconds."
    )
    usage: UsageBounds = Field(
        LEFT_OUT,
        examples=["usage: {llm_calls: 2}"],
        description="Upper bounds on tokens, calls and cost of models.",
    )
    warnings: list[Matcher] = Field(LEFT_OUT, description="These warnings were raised.")
    never_warnings: list[Matcher] = Field(LEFT_OUT, description="No such warning was raised.")
    checks: list[Condition] = Field(
        LEFT_OUT, examples=["checks: [{that: 'state.count > 2'}]"], description="CEL conditions."
    )
    custom: list[Custom] = Field(
        LEFT_OUT,
        examples=["custom: [{call: my_checks.polite}]"],
        description="Python functions that score the run.",
    )
    judge: Annotated[
        Annotated[list[Judge], Tag("list")] | Annotated[Judge, Tag("mapping")],
        by_shape("a judge, or a list of judges"),
    ] = Field(
        LEFT_OUT,
        examples=["judge: [{rubric: It is polite., model: gpt-4o}]"],
        description="Models that grade the output: one judge, or a list.",
    )
    unused: Annotated[bool, AfterValidator(_unused)] = Field(
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
        if key in ITEMIZED:
            yield from ((f"{key}[{index}]", item.span()) for index, item in enumerate(check_items(at, key)))
