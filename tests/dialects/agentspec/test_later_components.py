"""What versions after 25.4.1 bring: the checks of these fields and component types."""

from __future__ import annotations

import pytest

from tests.dialects.agentspec.configurations import MODEL, agent
from tests.dialects.agentspec.loader import Loader


@pytest.mark.parametrize(
    ("policy", "place", "code"),
    [
        ("{max_attempts: -1}", "-1", "bad-value"),
        ("{request_timeout: 0}", "0", "bad-value"),
        ("{jitter: some}", "some", "bad-value"),
        ("{attempts: 3}", "attempts", "unknown-key"),
        ("{initial_retry_delay: 9}", "{initial_retry_delay: 9}", "bad-value"),
    ],
)
def test_a_retry_policy_is_checked(loader: Loader, policy: str, place: str, code: str) -> None:
    model = MODEL.replace("model_id: m", f"model_id: m, retry_policy: {policy}")
    problem = loader.problem(agent(llm_config=model).replace("25.4.1", "26.1.2"))
    assert (problem.code, loader.place(problem)) == (code, place)


def test_a_retry_policy_in_an_earlier_version_is_refused_with_the_version_to_write(loader: Loader) -> None:
    model = MODEL.replace("model_id: m", "model_id: m, retry_policy: {max_attempts: 3}")
    problem = loader.problem(agent(llm_config=model, human_in_the_loop="false").replace("25.4.1", "25.4.2"))
    assert (problem.code, loader.place(problem)) == ("later-version", "retry_policy")
    assert problem.hint == "say agentspec_version: 26.1.2"


def test_a_run_may_pause_only_where_a_person_is_asked(loader: Loader) -> None:
    asks = agent(outputs="[{title: n, type: integer}]").replace("25.4.1", "25.4.2")
    assert loader.graph(asks).may_pause
    assert not loader.graph(asks + "human_in_the_loop: false\n").may_pause
    confirmed = "tools: [{component_type: ServerTool, name: pay, requires_confirmation: true}]\n"
    assert loader.graph(asks + "human_in_the_loop: false\n" + confirmed).may_pause
