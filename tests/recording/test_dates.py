"""A replay begins at the instant of its recording, so prompts that contain the date or an id match."""

from datetime import datetime, timedelta

from harness.time.real import real
from tests.recording.project import Project, told

TOOL = "import datetime, secrets\n\n\ndef forecast(city: str) -> str:\n    '''The forecast.'''\n"
TOOL += "    return f'{city} at {datetime.datetime.now()}, {secrets.token_hex(6)}'\n"
SERVED = """
llm:
  - {tool_calls: [{name: forecast, args: {city: Bergen}}], latency: 0.02}
  - {reply: Rain.}
"""


def recorded(project: Project, keys: str = "") -> None:
    project.write("dated_tools.py", TOOL)
    project.replace("weather.yaml", "town_tools.forecast", "dated_tools.forecast")
    scenario = project.scenario("weather", f"input: An umbrella?\ntools: {{forecast: real}}\n{keys}")
    with project.serving(SERVED):
        made = project.record(scenario)
    assert made.observed.output is not None
    assert told(project.replay(scenario)) == told(made)


def test_a_prompt_with_the_date_is_recorded_in_real_time_and_replayed(project: Project) -> None:
    before = real.now().replace(microsecond=0, tzinfo=None)
    recorded(project)
    meta = next(line for line in project.read("cassettes/it/meta.yaml").splitlines() if line[:4] == "now:")
    began = datetime.fromisoformat(meta.split("'")[1].rstrip("Z"))
    assert before <= began <= before + timedelta(minutes=10)


def test_a_replay_at_another_instant_is_another_prompt(project: Project) -> None:
    recorded(project)
    keys = "input: An umbrella?\ntools: {forecast: real}\nnow: 2040-01-01"
    outcome = project.replay(project.scenario("weather", keys))
    assert outcome.verdict == "error"
    assert outcome.now == "2040-01-01T00:00:00Z"
