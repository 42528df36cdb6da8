"""Real calls of several scenarios at once: what they share, and what survives an end. Source: docs/recording.md."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Lock
from typing import Any

import pytest

from harness.errors import CassetteError
from harness.interception.intercept import intercepted
from harness.interception.messages import Request, Response
from harness.recording.interactions import Interaction, Recording
from harness.recording.permits import Permits
from harness.recording.recorder import HTTPRecorder
from harness.recording.scrubber import Scrubber
from harness.recording.spending import Spending
from harness.recording.throttle import LONGEST_S, MOST_TRIES, Sent, Throttle, retry_after_s
from harness.recording.unfinished import UnfinishedRun
from harness.secrets import Secrets
from tests.recording.safety import Model, Project, parrots, said
from tests.world.loopback import CannedReply, ReceivedRequest

FIVE = [f"say-{number}" for number in range(5)]
TWO_TURNS = """\
harness: 1
manifest: parrot.yaml
scenarios:
  - {name: talk, cassette: talk, turns: [{input: first}, {input: second}]}
"""


# Its prompt has the instant of its import. The file that it writes then says how often that was.
APP = """\
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

model, began = ChatOpenAI(model="gpt-4o-mini"), datetime.now()
with open(Path(__file__).with_name("imports.txt"), "a") as file:
    file.write("imported\\n")


class State(TypedDict):
    text: str


async def ask(state: State) -> State:
    return {"text": str((await model.ainvoke(f"{state['text']} at {began}")).content)}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
builder.add_edge("ask", END)
graph = builder.compile()
"""
ROWS = "".join(
    f"  - {{name: row {n}, cassette: row-{n}, input: {{text: x{n}}}, expect: {{path: [ask]}}}}\n"
    for n in range(3)
)


class Crowded:
    """A model that answers at most `most` requests at once, and refuses the others until one has ended."""

    def __init__(self, most: int, headers: dict[str, str] | None = None) -> None:
        self.heard: list[str] = []
        self.refused = 0
        self._headers, self._most = headers or {}, most
        self._now, self._lock, self._full = 0, Lock(), Event()

    def __call__(self, asked: ReceivedRequest) -> CannedReply:
        with self._lock:
            if self._now >= self._most:
                self.refused += 1
                self._full.set()
                return CannedReply(
                    json={"error": {"message": "slow down"}}, status=429, headers=self._headers
                )
            self._now += 1
        text: str = asked.json["messages"][-1]["content"]
        if not self.heard:
            self._full.wait(30)  # the first answer comes after a refusal
        with self._lock:
            self._now -= 1
            self.heard.append(text)
        return said(text)


# ------------------------------------------------------------ at once


def test_eight_scenarios_are_recorded_at_once_and_reported_in_order(tmp_path: Path) -> None:
    together = Barrier(5)
    with parrots(tmp_path, Model(lambda _: together.wait(60))) as project:
        project.parrot(*FIVE)
        done = project.run("harness", "record", ".")
        assert done.code == 0, done.all
        assert list(project.results()) == FIVE
    assert project.replay().code == 0


def test_a_host_gets_no_more_requests_at_once_than_the_project_allows(tmp_path: Path) -> None:
    now, most, lock, pair = 0, 0, Lock(), Barrier(2)

    def before(_: str) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        pair.wait(60)
        with lock:
            now -= 1

    with parrots(tmp_path, Model(before)) as project:
        project.parrot(*FIVE[:4])
        project.write("pyproject.toml", "[tool.harness]\nmax_connections = 2\n")
        assert project.run("harness", "record", ".").code == 0
    assert most == 2


@pytest.mark.parametrize("headers", [{}, {"retry-after": "0"}])
def test_a_provider_that_has_too_many_at_once_is_slowed_down_to(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    model = Crowded(1, headers)
    with parrots(tmp_path, model) as project:
        project.parrot(*FIVE)
        done = project.run("harness", "record", ".")
        assert done.code == 0, done.all
    assert model.refused > 0
    assert sorted(model.heard) == FIVE
    assert not any(
        b"code: 429" in data for data in project.cassettes().values()
    )  # only what was answered is recorded


def test_a_budget_of_calls_is_kept_exactly_by_all_processes_together(tmp_path: Path) -> None:
    model = Model()
    with parrots(tmp_path, model) as project:
        project.parrot(*FIVE)
        project.write("variants.yaml", "harness: 1\nvariants: [{name: nice, prompts: {manner: Be nice.}}]")
        score = ["score", ".", "--variants", "variants.yaml", "--record-mode", "new_episodes", "--yes"]
        assert project.run("harness", *score, "--budget", "7 calls").code == 3
        assert len(model.heard) == 7
        assert project.run("harness", *score).code == 0
    assert len(model.heard) == 10  # nothing was paid for twice


# ------------------------------------------------------------ cut off


# The command, which stops sooner after Ctrl-C.
IMPATIENT = """\
from harness.cli import interruption, main

interruption.PATIENCE_S = 0.1
if __name__ == "__main__":
    main.main()
"""


def stopped_at(project: Project, reached: Event, how: signal.Signals, release: Event) -> int:
    """Start to record, end it in this way when a call is under way, and return the exit code."""
    process = project.start(project.write("impatient.py", IMPATIENT), "record", ".")
    assert reached.wait(60)
    process.send_signal(how)
    if how is signal.SIGKILL:
        process.wait(60)
    else:
        assert process.stderr is not None
        assert next(line for line in process.stderr if "waiting for 2 calls in flight" in line)
    release.set()
    _, last = process.communicate(timeout=60)  # also of the processes that it has left
    if how is not signal.SIGKILL:
        assert "the same command goes on from the answers so far" in last
    return process.returncode


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_calls_under_way_at_the_end_of_the_command_are_not_made_again(
    tmp_path: Path, how: signal.Signals
) -> None:
    together, released, reached = Barrier(2, timeout=60), Event(), Event()

    def before(_: str) -> None:
        if not reached.is_set():
            together.wait()
            reached.set()
        released.wait(60)

    model = Model(before)
    with parrots(tmp_path, model) as project:
        project.parrot("one", "two")
        assert stopped_at(project, reached, how, released) in (3, -signal.SIGKILL)
        assert project.run("harness", "record", ".").code == 0
    assert sorted(model.heard) == ["one", "two"]
    assert project.replay().code == 0


def test_the_calls_of_a_run_that_was_killed_are_not_made_again(tmp_path: Path) -> None:
    reached, released = Event(), Event()

    def before(text: str) -> None:
        if text == "second" and not reached.is_set():
            reached.set()
            released.wait(60)

    model = Model(before)
    with parrots(tmp_path, model) as project:
        project.parrot()
        project.write("p.scenario.yaml", TWO_TURNS)
        process = project.start("harness", "record", ".")
        assert reached.wait(60)
        process.kill()
        process.wait(60)
        released.set()
        process.communicate(timeout=60)
        kept = [*project.folder.rglob(".unfinished/**/*.yaml")]
        assert kept
        assert not any(b"sk-parrot-4711" in path.read_bytes() for path in kept)
        assert project.record().code == 0
        assert model.heard == ["first", "second", "second"]
    assert project.replay().code == 0
    assert not [*project.folder.rglob(".unfinished")]


def test_a_recording_may_have_a_budget_too(tmp_path: Path) -> None:
    model = Model()
    with parrots(tmp_path, model) as project:
        project.parrot(*FIVE)
        done = project.record(".", "-j", "1", "--budget", "2")
        assert (done.code, len(model.heard)) == (3, 2)
        assert "the budget of 2 calls is spent; the same command goes on from here" in done.err
        assert project.record(".", "-j", "1").code == 0
    assert sorted(model.heard) == FIVE


def test_a_run_that_ends_for_want_of_a_budget_keeps_all_its_answers(tmp_path: Path) -> None:
    model = Model()
    with parrots(tmp_path, model) as project:
        project.parrot()
        project.write("p.scenario.yaml", TWO_TURNS)
        project.write("variants.yaml", "harness: 1\nvariants: [{name: nice, prompts: {manner: Be nice.}}]")
        score = [
            "score",
            ".",
            "--variants",
            "variants.yaml",
            "--record-mode",
            "new_episodes",
            "--yes",
            "-j",
            "1",
        ]
        assert project.harness(*score, "--budget", "1 call").code == 3
        assert model.heard == ["first"]
        assert project.harness(*score).code == 0
    assert len(model.heard) == 4  # two turns of two variants


def test_an_app_is_imported_once_for_all_processes_and_replayed_with_that_instant(tmp_path: Path) -> None:
    with parrots(tmp_path, Model()) as project:
        project.write("app.py", APP)
        project.write("a.scenario.yaml", f"harness: 1\nmanifest: app.py:graph\nscenarios:\n{ROWS}")
        done = project.run("harness", "record", "a.scenario.yaml", "-j", "3")
        assert done.code == 0, done.all
        assert len((tmp_path / "imports.txt").read_text().splitlines()) == 1
    done = project.replay("a.scenario.yaml")
    assert done.code == 0, done.all
    # Once a thread is left, a fork cannot have the app: each run imports it, at the same instant.
    left = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    project.write("app.py", f"{APP}\n{left}")
    done = project.replay("a.scenario.yaml::row 0")
    assert done.code == 0, done.all


def test_what_was_made_to_replace_a_recording_does_not_complete_one(tmp_path: Path) -> None:
    """A run fails at its second call; `--rewrite` makes the first one again, `record` does not."""
    heard: list[str] = []

    def model(asked: ReceivedRequest) -> CannedReply:
        heard.append(asked.json["messages"][-1]["content"])
        return said(heard[-1]) if heard[-1] == "first" else CannedReply(json={"error": {}}, status=400)

    with parrots(tmp_path, model) as project:
        project.parrot()
        project.write("p.scenario.yaml", TWO_TURNS)
        done = project.record()
        assert "the first 1 of its calls will not be made again" in done.out
        project.record()
        assert heard == ["first", "second", "second"]
        project.record(".", "--rewrite")
    assert heard[3:] == ["first", "second"]


# ------------------------------------------------------------ the parts


def call(text: str, body: str = "{}") -> Recording:
    request = Request("POST", "http://model.test/", {}, text.encode())
    return Recording((Interaction(request, Response(200, "OK", (), body.encode()), 1, 0.5),))


def test_an_unfinished_run_is_read_back_up_to_what_is_damaged(tmp_path: Path) -> None:
    folder = tmp_path / ".unfinished" / "missing" / "1"
    run = UnfinishedRun(folder, Scrubber())
    for text in ("one", "two", "three"):
        run.add(call(text))
    (folder / "000002" / "http.yaml").write_text("interactions: {")
    again = UnfinishedRun(folder, Scrubber())
    loaded = again.load()
    assert loaded is not None
    assert [each.request.body for each in loaded.http] == [b"one"]
    again.add(call("four"))
    loaded = UnfinishedRun(folder, Scrubber()).load()
    assert loaded is not None
    assert [each.request.body for each in loaded.http] == [b"one", b"four"]


def test_a_secret_that_a_later_call_reveals_is_removed_from_the_calls_before(tmp_path: Path) -> None:
    folder = tmp_path / ".unfinished" / "missing" / "1"
    run = UnfinishedRun(folder, Scrubber(Secrets({})))
    run.add(call("the word is swordfish-4711"))
    run.add(call("what is the token?", '{"access_token": "swordfish-4711"}'))
    assert not any(b"swordfish" in path.read_bytes() for path in folder.rglob("*.yaml"))


def test_a_person_is_asked_by_the_process_that_has_the_terminal() -> None:
    def ask(node: str, args: Any) -> str:
        if node == "silent":
            raise EOFError
        return f"{node}: {args['question']}"

    with Permits(Spending(lambda *_: 0.0), ask=ask) as source:
        assert source.asks
        assert source.ask("review", {"question": "Good?"}) == "review: Good?"
        with pytest.raises(EOFError):
            source.ask("silent", {})


def answered(throttle: Throttle, sent: Sent, status: int, headers: dict[str, str] | None = None) -> bool:
    return throttle.end(sent, status, headers or {})


def begun(throttle: Throttle, count: int = 1) -> list[Sent]:
    sent = [Sent("api.test") for _ in range(count)]
    for each in sent:
        throttle.begin(each)
    return sent


def test_a_refusal_under_load_halves_the_connections_once_and_good_answers_widen_them() -> None:
    throttle = Throttle(16)
    sent = begun(throttle, 8)
    assert all(answered(throttle, each, 429, {"retry-after": "0"}) for each in sent[:4])
    host = throttle.hosts["api.test"]
    assert (host.most, host.open, host.refusals) == (4, 4, 1)
    assert throttle.wait_s("api.test") == float("inf")  # four are under way
    assert throttle.wait_s("api.test", patient=False) == 0
    for each in sent[4:]:
        assert not answered(throttle, each, 200)
    assert 4 < host.most <= 5
    assert throttle.wait_s("api.test") == 0


def test_a_refusal_without_load_is_the_answer_of_the_provider() -> None:
    throttle = Throttle()
    for _ in range(3):
        [sent] = begun(throttle)
        assert not answered(throttle, sent, 429, {"retry-after": "0"})


def test_a_provider_that_answers_nobody_any_more_is_not_asked_for_ever() -> None:
    throttle = Throttle()
    first, second = begun(throttle, 2)
    tries = 0
    while answered(throttle, first, 429, {"retry-after": "0"}):
        tries += 1
        throttle.begin(first)
    assert tries == 3
    assert answered(throttle, second, 429, {"retry-after": "0"})


def test_a_request_that_alone_is_refused_is_not_sent_for_ever() -> None:
    throttle = Throttle()
    [refused] = begun(throttle)
    tries = 1
    while True:
        [other] = begun(throttle)
        assert not answered(throttle, other, 200)
        if not answered(throttle, refused, 429, {"retry-after": "0"}):
            break
        throttle.begin(refused)
        tries += 1
    assert tries == MOST_TRIES


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_when_to_come_back_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


def test_a_provider_that_asks_to_wait_for_long_is_used_up_and_not_overloaded() -> None:
    throttle = Throttle()
    sent, _ = begun(throttle, 2)
    assert not answered(throttle, sent, 429, {"retry-after": str(LONGEST_S + 1)})
    assert throttle.wait_s("api.test") == 0


def test_a_request_of_aiohttp_that_fails_gives_its_permit_back() -> None:
    aiohttp, spending = pytest.importorskip("aiohttp"), Spending(lambda *_: 0.0)
    permits = Permits(spending)

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.post("http://127.0.0.1:9/", json={"model": "m", "prompt": "Hi."})

    with permits as source:
        recorder = HTTPRecorder((), lambda *_: None, True, lambda *_: CassetteError(""), source=source)
        with intercepted(recorder):
            asyncio.run(ask())
        with permits.drained():
            assert (permits.in_flight, spending.calls) == (0, 1)


def test_a_permit_that_breaks_off_gives_back_what_it_held() -> None:
    spending, request = Spending(lambda *_: 0.0), Request("POST", "http://api.test/", {}, b"{}")
    with Permits(spending, max_connections=1) as source:
        first = source.permit(request, patient=True)
        first.wait()
        second = source.permit(request, patient=True)
        first.close()
        second.wait()
        assert not second.answered(replace(Response(200), body=b"{}"))
        second.spent(Response(200))
