"""Wrong uses of the public API, each of which type checkers refuse: those are the lines that end with `# error`."""

from harness import AgentRun, Call, Results, Run, arun, load_results, run
from harness.strategies import replies, tool_calls


def wrong_arguments() -> None:
    run()  # error
    run(manifest="agents/triage.yaml")  # error
    run("triage.yaml", "hi", {})  # error
    run("triage.yaml", modle={"answer": ["hi"]})  # error
    run("triage.yaml", llm=7)  # error
    run("triage.yaml", tools=["find_order"])  # error
    run("triage.yaml", seed="7")  # error
    run("triage.yaml", timeout="2 s")  # error
    run("triage.yaml", record_mode="never")  # error
    run("triage.yaml", now=2026)  # error
    run("triage.yaml", env={"DEBUG": 1})  # error


async def wrong_waiting() -> None:
    found: Run = arun("triage.yaml")  # error
    print(found)
    await run("triage.yaml")  # error


def wrong_uses_of_a_run(done: Run) -> None:
    done.status = "failed"  # error
    print(done.stauts)  # error
    done.calls(tool=7)  # error
    done.send("hi", seed=7)  # error
    done.check(pth=["classify"])  # error
    done.check(status="complete")  # error
    done.check(path={"classify"})  # error
    done.check(visits={"classify": "1"})  # error
    done.check({"state": {}})  # error


def wrong_uses_of_a_call(call: Call) -> None:
    call.latency = 0.0  # error
    print(call.arguments)  # error


def wrong_fixture(agent_run: AgentRun) -> None:
    agent_run("triage.yaml", llmm=["hi"])  # error
    print(agent_run.status)  # error


def wrong_results(results: Results) -> None:
    load_results(7)  # error
    load_results(["reports/latest"])  # error
    results.frame("runs")  # error
    results.groups(["tag"])  # error
    results.rows()  # error


def wrong_strategies() -> None:
    replies("a schema")  # error
    replies({"type": "string"}, ["billing"])  # error
    tool_calls("find_order", word=["7"])  # error
