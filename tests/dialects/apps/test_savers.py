"""Checkpointers and stores of libraries that need a server, which an app makes at its import or in a factory."""

from textwrap import dedent

import pytest

from harness.scenario import app_process
from tests.dialects.apps.conftest import RunApp, error_of

LIBRARY = """
    import asyncio, socket
    from contextlib import asynccontextmanager, contextmanager

    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore

    def connect(address):
        return socket.create_connection((address, 5432))

    class Saver(BaseCheckpointSaver):
        def __init__(self, connection):
            super().__init__()
            self.connection = connect(connection) if isinstance(connection, str) else connection

        @classmethod
        @contextmanager
        def from_conn_string(cls, address):
            yield cls(connect(address))

        def setup(self):
            self.connection.send(b"create table")

        def put(self, *args):
            self.connection.send(b"insert")

    class AsyncSaver(Saver):
        @classmethod
        @asynccontextmanager
        async def from_conn_string(cls, address):
            await asyncio.get_running_loop().getaddrinfo(address, 5432)
            yield cls(connect(address))

        async def setup(self):
            self.connection.send(b"create table")

        async def __aenter__(self):
            await self.setup()
            return self

        async def __aexit__(self, *_):
            self.connection.close()

    class Store(BaseStore):
        def __init__(self, connection):
            self.connection = connection

        @classmethod
        @contextmanager
        def from_conn_string(cls, address, index=None):
            yield cls(connect(address))

        def setup(self):
            self.connection.send(b"create table")

        def batch(self, ops):
            self.connection.send(b"select")

        async def abatch(self, ops):
            self.connection.send(b"select")
"""

APP = """
    import sys
    from contextlib import asynccontextmanager, contextmanager
    from pathlib import Path
    from typing import Annotated, TypedDict

    sys.path.insert(0, str(Path(__file__).with_name("site-packages")))

    from langgraph.config import get_store
    from langgraph.graph import StateGraph
    from langgraph.graph.message import add_messages
    from langgraph.types import interrupt

    import served
    from served import AsyncSaver, Saver, Store

    class State(TypedDict):
        messages: Annotated[list, add_messages]

    def ask(state):
        number = sum(each.type == "human" for each in state["messages"])
        return {"messages": [("ai", f"{number}: {interrupt('sure?')}")]}

    def keep(state):
        get_store().put(("said",), "last", {"text": state["messages"][-1].content})
        return {}

    builder = StateGraph(State).add_node("ask", ask).add_node("keep", keep)
    builder.set_entry_point("ask").add_edge("ask", "keep")

    def at_once():
        saver = Saver("db.example")
        saver.setup()
        return builder.compile(checkpointer=saver)

    graph = at_once()

    @contextmanager
    def opened():
        with Saver.from_conn_string("db.example") as saver, Store.from_conn_string("db.example") as store:
            saver.setup()
            store.setup()
            yield builder.compile(checkpointer=saver, store=store)

    @asynccontextmanager
    async def opened_async():
        async with AsyncSaver.from_conn_string("db.example") as saver, AsyncSaver("db.example") as other:
            await saver.setup()
            yield builder.compile(checkpointer=saver)

    class OfApp(Saver):
        pass

    def own():
        return builder.compile(checkpointer=OfApp("db.example"))

    def unused():
        return builder.compile(checkpointer=Saver(served.connect("db.example")))

    def asks(state, config):
        found = saver.list({"configurable": {"thread_id": config["configurable"]["thread_id"]}})
        return {"messages": [("ai", f"saved {len(list(found)) > 1}")]}

    saver = Saver("db.example")
    asking = StateGraph(State).add_node("asks", asks).set_entry_point("asks").compile(checkpointer=saver)
    lacks = StateGraph(State).add_node("uses", lambda state: saver.connection.send(b"")).set_entry_point("uses")

    def agent(text, thread_id):
        thread = {"configurable": {"thread_id": thread_id}}
        with Saver.from_conn_string("db.example") as opened:
            graph = StateGraph(State).add_node("end", lambda state: {}).set_entry_point("end").compile(opened)
            return [each.content for each in graph.invoke({"messages": text}, thread)["messages"]]
"""
FILES = {"site-packages/served.py": LIBRARY, "app.py": APP}


@pytest.mark.parametrize("name", ["graph", "at_once", "opened", "opened_async"])
@pytest.mark.parametrize("forks", [True, False])
def test_a_checkpointer_that_needs_a_server_is_one_in_memory(
    run_app: RunApp, monkeypatch: pytest.MonkeyPatch, name: str, forks: bool
) -> None:
    monkeypatch.setattr(app_process, "is_available", lambda: forks)
    found = run_app(
        f"""
        manifest: app.py:{name}
        defaults:
          expect:
            output: "2: no"
            state: {{messages: {{$len: 4}}}}
            store: [{{namespace: [said], key: last, value: {{text: "2: no"}}}}]
        scenarios:
          - {{name: turns, turns: [{{input: hi}}, {{resume: yes}}, {{input: again}}, {{resume: "no"}}]}}
          - {{name: others, turns: [{{input: hi}}, {{resume: yes}}, {{input: again}}, {{resume: "no"}}]}}
        """,
        FILES,
    )
    for outcome in found.values():
        assert outcome.passed, outcome.checks
        assert [each for each in outcome.observed.warnings if "network" in each] == []


def test_the_code_of_an_app_asks_the_checkpointer_that_the_run_has(run_app: RunApp) -> None:
    scenario = "{name: it, turns: [{input: hi}, {input: again}], expect: {output: saved True}}"
    outcome = run_app(f"manifest: app.py:asking\nscenarios: [{scenario}]", FILES)["it"]
    assert outcome.passed, outcome.checks


def test_a_checkpointer_that_is_made_for_each_turn_has_what_the_one_before_saved(run_app: RunApp) -> None:
    turns = "[{input: hi}, {input: again}]"
    scenario = f"{{name: it, turns: {turns}, expect: {{output: [hi, again]}}}}"
    outcome = run_app(f"manifest: app.py:agent\nscenarios: [{scenario}]", FILES)["it"]
    assert outcome.passed, outcome.checks


def test_what_one_in_memory_lacks_is_told(run_app: RunApp) -> None:
    outcome = run_app("manifest: app.py:lacks\nscenarios: [{name: it, input: hi}]", FILES)["it"]
    assert error_of(outcome) == "this Saver is in memory, as it has no server, and lacks 'connection'"


@pytest.mark.parametrize("name", ["own", "unused"])
def test_an_app_that_connects_by_itself_is_told_the_address_and_what_to_do(
    run_app: RunApp, name: str
) -> None:
    outcome = run_app(f"manifest: app.py:{name}\nscenarios: [{{name: it, input: hi}}]", FILES)["it"]
    assert "it reaches for the network: " in error_of(outcome)
    assert "db.example:5432" in error_of(outcome)
    assert "name a function that makes the graph and takes a `checkpointer`" in error_of(outcome)


PSYCOPG = {
    "site-packages/psycopg2.py": """
        class OperationalError(Exception):
            pass

        class extensions:
            make_dsn = staticmethod(lambda dsn, **_: dsn)
            parse_dsn = staticmethod(lambda dsn: dict(each.split("=") for each in dsn.split()))

        def connect(dsn=None, *args, **options):
            return "connected"
    """,
    "site-packages/psycopg.py": """
        class OperationalError(Exception):
            pass

        class conninfo:
            def conninfo_to_dict(text, **options):
                return dict(each.split("=") for each in text.split()) | options

        class Connection:
            @classmethod
            def connect(cls, conninfo="", **options):
                return "connected"

        class AsyncConnection:
            @classmethod
            async def connect(cls, conninfo="", **options):
                return "connected"

        connect = Connection.connect
    """,
    "app.py": """
        import sys
        from pathlib import Path
        sys.path.insert(0, str(Path(__file__).with_name("site-packages")))
        import psycopg, psycopg2

        async def agent(input):
            tries = [
                lambda: psycopg2.connect("host=127.0.0.1 dbname=shop"),
                lambda: psycopg2.connect(host="127.0.0.1", port=6543),
                lambda: psycopg.connect("host=127.0.0.1"),
            ]
            told = []
            for each in tries:
                try:
                    told.append(each())
                except (psycopg.OperationalError, psycopg2.OperationalError) as error:
                    told.append(str(error))
            try:
                told.append(await psycopg.AsyncConnection.connect(host="10.0.0.1"))
            except psycopg.OperationalError as error:
                told.append(str(error))
            return told
    """,
}


def test_a_connection_that_psycopg_makes_in_c_is_refused_as_any_other(run_app: RunApp) -> None:
    outcome = run_app("manifest: app.py:agent\nscenarios: [{name: it, input: hi}]", PSYCOPG)["it"]
    assert outcome.observed.error is None
    addresses = [text.rpartition(" ")[2] for text in outcome.observed.output]
    assert addresses == ["127.0.0.1:5432", "127.0.0.1:6543", "127.0.0.1:5432", "10.0.0.1:5432"]
    assert all("the network is closed" in text for text in outcome.observed.output)


def test_a_checkpointer_that_keeps_a_file_is_the_real_one(run_app: RunApp) -> None:
    library = f"import sqlite3\n{dedent(LIBRARY)}\nclass FileSaver(Saver): pass\n"
    app = """
        import sys
        from pathlib import Path
        sys.path.insert(0, str(Path(__file__).with_name("site-packages")))
        from filed import FileSaver
        made = FileSaver(7)
        def agent(input): return made.connection
    """
    files = {"site-packages/filed.py": library, "app.py": app}
    scenario = "manifest: app.py:agent\nscenarios: [{name: it, input: hi, expect: {output: 7}}]"
    assert run_app(scenario, files)["it"].passed


def test_a_graph_that_a_server_sets_later_is_told(run_app: RunApp) -> None:
    outcome = run_app(
        "manifest: app.py:graph\nscenarios: [{name: it, input: hi}]", {"app.py": "graph = None"}
    )["it"]
    assert "such as the lifespan of a server, does not run: name a function" in error_of(outcome)
