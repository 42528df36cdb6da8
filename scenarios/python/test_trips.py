"""Ten tests of two LangGraph apps in plain Python: see docs/python.md."""

from harness import AgentRun

trips = "../langgraph/react/trip_planner.py:graph"
bank = "../langgraph/approval/bank_agent.py:graph"

MILAN = {"tool_calls": [{"name": "departures", "args": {"origin": "Bern", "destination": "Milan"}}]}
ROME = {"tool_calls": [{"name": "departures", "args": {"origin": "Bern", "destination": "Rome"}}]}
RAIN = {"tool_calls": [{"name": "weather", "args": {"city": "Milan"}}]}
PAY = {"tool_calls": [{"name": "pay", "args": {"to": "Ada", "amount": 50}}]}


def test_the_path(agent_run: AgentRun) -> None:
    agent_run(trips, "To Milan?", llm=[MILAN, "At 08:07."]).check(path=["planner", "tools", "planner"])


def test_the_arguments_of_a_tool(agent_run: AgentRun) -> None:
    run = agent_run(trips, "To Milan?", llm=[MILAN, "At 08:07."])
    assert run.calls(tool="departures")[0].args == {"origin": "Bern", "destination": "Milan"}


def test_the_model_reads_the_result(agent_run: AgentRun) -> None:
    run = agent_run(trips, "To Milan?", llm=[MILAN, lambda request: f"Take {request.prompt}"])
    assert "08:07" in run.output


def test_a_tool_that_fails_is_recovered_from(agent_run: AgentRun) -> None:
    run = agent_run(trips, "To Rome?", llm=[ROME, MILAN, "Change in Milan."])
    run.check(
        calls=[{"tool": "departures", "ok": False}, {"tool": "departures", "ok": True}],
        output={"$contains": "Milan"},
    )


def test_the_request_of_a_tool(agent_run: AgentRun) -> None:
    run = agent_run(
        trips,
        "How is Milan?",
        llm=[RAIN, "Mild."],
        http={"url": "https://weather.example/*", "json": {"celsius": 19}},
    )
    assert run.calls(http="*")[0].args["query"] == {"city": "Milan"}


def test_a_service_that_is_down(agent_run: AgentRun) -> None:
    run = agent_run(
        trips,
        "How is Milan?",
        llm=[RAIN, "I cannot tell."],
        http={"url": "https://weather.example/*", "status": 503},
    )
    run.check(output="I cannot tell.", calls=[{"tool": "weather", "ok": False}])


def test_an_overloaded_provider_is_asked_again(agent_run: AgentRun) -> None:
    run = agent_run(trips, "Hi", llm=[{"error": {"kind": "rate_limit", "retry_after": 20}}, "Hello."])
    run.check(output="Hello.", call_counts={"llm": 2})
    assert run.latency["total"] >= 20


def test_it_is_fast_enough(agent_run: AgentRun) -> None:
    run = agent_run(trips, "To Milan?", llm=[{**MILAN, "latency": 2}, {"reply": "At 08:07.", "latency": 1}])
    assert run.latency["total"] == 3.5


def test_a_person_approves(agent_run: AgentRun) -> None:
    run = agent_run(bank, "Pay Ada 50", llm=[PAY, "Done."])
    assert run.calls(tool="pay") == []
    assert run.resume({"decisions": [{"type": "approve"}]}).calls(tool="pay")[0].args == {
        "to": "Ada",
        "amount": 50,
    }


def test_it_remembers(agent_run: AgentRun) -> None:
    run = agent_run(bank, "I am Ada", llm=["Hello."])
    second = run.send("Who am I?", llm=lambda request: str(len(request.messages)))
    assert second.output == "4"
