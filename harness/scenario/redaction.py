"""Removal of secrets from the output and the outcome of a scenario's runs, before anything is shown or written.

Checks see the original values. Names from the manifest and the scenario (nodes, tools, checks) are kept.
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
from harness.secrets.secrets import known_to
from harness.settings import Settings

_NAMES: Final = frozenset({"kind", "name", "node", "type", "code", "where"})
"""Keys of calls and errors whose values are names."""
_TEXTS: Final = frozenset({"text", "message"})
"""Fields of events that contain text for people, which may quote any value."""


def secrets_of_process(settings: Settings) -> Secrets:
    """Return the secrets in the environment variables of this process."""
    variables = variables_of_process(settings.secrets, settings.public_env)
    return Secrets(variables, settings.secrets, settings.public_env)


def secrets_of(scenario: Scenario, settings: Settings) -> Secrets:
    """Return the secrets known before a scenario runs: those of this process and those of the scenario's `env`."""
    secrets = secrets_of_process(settings)
    if scenario.env:
        secrets.add(scenario.env)
    return secrets


def prepare_redaction(scenario: Scenario, settings: Settings) -> None:
    """Compile what finds secrets, which each process that is forked from this one would do anew."""
    secrets_of(scenario, settings).may_be_in({"password": "a text that looks like one with a secret"})


@contextmanager
def redacted_output(secrets: Secrets) -> Iterator[None]:
    """Remove secrets from everything that is printed or logged inside. Variables given to scripts are learned."""
    with known_to(secrets), redacted_logs(secrets.text), redacted_streams(secrets.text):
        yield


def redacted(outcome: Outcome, secrets: Secrets) -> Outcome:
    """Remove secrets from an outcome, in place, and return it."""
    observed = outcome.observed
    values: list[Any] = [
        observed.state, observed.output, observed.interrupts, [_without_names(call) for call in observed.calls],
    ]  # fmt: skip
    texts: list[Any] = [
        observed.warnings, observed.unused, None if observed.error is None else _without_names(observed.error),
        [[check.expected, check.actual, check.message] for check in outcome.checks],
        outcome.reason, outcome.narration,
    ]  # fmt: skip
    free = [values, texts]
    scrubbed = secrets.data(free)
    if scrubbed is not free:
        values, texts = scrubbed
        observed.state, observed.output, observed.interrupts, calls = values
        observed.warnings, observed.unused, error, checks, outcome.reason, outcome.narration = texts
        observed.calls = [{**call, **rest} for call, rest in zip(observed.calls, calls, strict=True)]
        if observed.error is not None:
            observed.error = {**observed.error, **error}
        for check, parts in zip(outcome.checks, checks, strict=True):
            check.expected, check.actual, check.message = parts
    if scrubbed is not free or outcome.recording is not None or outcome.made is not None:
        observed.warnings += map(_guess_warning, secrets.guessed_in(scrubbed))
    return outcome


def redacted_events(trace: Trace, secrets: Secrets) -> list[Event]:
    """Return the events of a trace in the form of a trace file, without secrets.

    Secrets found here are not added to `secrets`, so that results are the same with and without traces.
    """
    shared = with_shared([*trace.events], trace.plain_message)
    if not secrets.may_be_in(shared):
        return shared
    free = [
        {key: event[key] for key in event if key in DATA or key in _TEXTS or _is_url(event, key)}
        for event in shared
    ]
    scrubbed = secrets.copy().data(free)
    if scrubbed is free:
        return shared
    return [{**event, **rest} for event, rest in zip(shared, scrubbed, strict=True)]


def _is_url(call: Mapping[str, Any], key: str) -> bool:
    """True if this is the name of an HTTP request, which is its URL."""
    return key == "name" and call.get("kind") == "http"


def _guess_warning(name: str) -> str:
    return (
        f"the value of {name} is shown as {placeholder(name)}, since any variable may hold a secret; "
        f'if it is not a secret: public_env = ["{name}"] in [tool.harness]'
    )


def _without_names(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in _NAMES or _is_url(mapping, key)}
