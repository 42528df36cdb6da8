"""Secrets of a scenario's runs, taken out of what is printed meanwhile and of the outcome, before anybody reads it.

Checks see values as they are. Names that the manifest and the scenario give (nodes, tools, checks) stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from harness.graph.sharing import DATA, with_shared
from harness.graph.trace import Event, Trace
from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from harness.secrets import Secrets, placeholder
from harness.secrets.environment import variables_of_process
from harness.secrets.output import redacted_logs, redacted_streams
from harness.settings import Settings

_NAMES: Final = frozenset({"kind", "name", "node", "type", "code", "where"})
"""Keys of a call and of an error whose values are names."""
_TEXTS: Final = frozenset({"text", "message"})
"""Fields of events that are texts for people, which may quote anything."""


def secrets_of_process(settings: Settings) -> Secrets:
    """The secrets in the variables of this process."""
    variables = variables_of_process(settings.secrets, settings.public_env)
    return Secrets(variables, settings.secrets, settings.public_env)


def secrets_of(scenario: Scenario, settings: Settings) -> Secrets:
    """The secrets that a run of a scenario begins with: those of this process, and of the scenario's `env`."""
    secrets = secrets_of_process(settings)
    if scenario.env:
        secrets.add(scenario.env)
    return secrets


@contextmanager
def redacted_output(secrets: Secrets) -> Iterator[None]:
    """What is printed and logged inside has no secrets."""
    with redacted_logs(secrets.text), redacted_streams(secrets.text):
        yield


def redacted(outcome: Outcome, secrets: Secrets) -> Outcome:
    """The outcome without secrets; it is changed in place."""
    observed = outcome.observed
    values: list[Any] = [
        observed.state, observed.output, observed.interrupts, [_free(call) for call in observed.calls],
    ]  # fmt: skip
    texts: list[Any] = [
        observed.warnings, observed.unused, None if observed.error is None else _free(observed.error),
        [[check.expected, check.actual, check.message] for check in outcome.checks],
        outcome.reason, outcome.narration,
    ]  # fmt: skip
    free = [values, texts]
    scrubbed = secrets.data(free)
    # Texts for people were cut where they are long, before anything was taken out of them.
    if (whole := secrets.without_cut_values(scrubbed[1])) is not scrubbed[1]:
        scrubbed = [scrubbed[0], whole]
    if scrubbed is not free:
        values, texts = scrubbed
        observed.state, observed.output, observed.interrupts, calls = values
        observed.warnings, observed.unused, error, checks, outcome.reason, outcome.narration = texts
        observed.calls = [{**call, **rest} for call, rest in zip(observed.calls, calls, strict=True)]
        if observed.error is not None:
            observed.error = {**observed.error, **error}
        for check, parts in zip(outcome.checks, checks, strict=True):
            check.expected, check.actual, check.message = parts
    if scrubbed is not free or outcome.recording is not None or outcome.recorded is not None:
        observed.warnings += map(_guessed, secrets.guessed_in(scrubbed))
    return outcome


def redacted_events(trace: Trace, secrets: Secrets) -> list[Event]:
    """The events of a trace as a file keeps them, without secrets.

    What is found to be secret here stays unknown to `secrets`: results are the same with traces and without.
    """
    shared = with_shared([*trace.events], trace.plain_message)
    if not secrets.may_be_in(shared):
        return shared
    free = [
        {key: event[key] for key in event if key in DATA or key in _TEXTS or _is_url(event, key)}
        for event in shared
    ]
    scrubbed = secrets.apart().data(free)
    if scrubbed is free:
        return shared
    return [{**event, **rest} for event, rest in zip(shared, scrubbed, strict=True)]


def _is_url(call: Mapping[str, Any], key: str) -> bool:
    """True for the name of an HTTP request, which is its URL."""
    return key == "name" and call.get("kind") == "http"


def _guessed(name: str) -> str:
    return (
        f"the value of {name} is shown as {placeholder(name)}, since any variable may hold a secret; "
        f'if it is none: public_env = ["{name}"] in [tool.harness]'
    )


def _free(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in _NAMES or _is_url(mapping, key)}
