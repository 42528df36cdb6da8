"""HTTP of tools with their own clients is recorded and replayed, in any thread, failures included."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from textwrap import indent

import pytest

from harness.scenario.model import Scenario
from harness.scenario.outcome import Outcome
from tests.manifests import USES_TOOLS
from tests.recording.project import Project, told
from tests.timing import shortest
from tests.world.loopback import CannedReply, loopback, refusing_url, silent_url

PROBE = """
manifest_version: 1
default_llm: {id: teller}
llms: [{id: teller, version: "1.0.0", provider: openai, model_name: gpt-4o-mini}]
tools: [{id: ask, version: "1.0.0", import_path: MODULE.ask}]
"""
PROBE += USES_TOOLS
MODEL = "llm:\n  - tool_calls: [{name: ask, args: {}}]\n  - {reply: Done.}\n"
URL = "http://served.test/wind"


NUMBERS = count()


def probing(project: Project, body: str, url: str = URL) -> Scenario:
    """Write a scenario with a tool of this body, whose `URL` is served."""
    module = f"probe_tools_{next(NUMBERS)}"  # its own: modules and graphs are kept by their names
    project.write(
        f"{module}.py",
        f"""
import asyncio, http.client, json, urllib.error, urllib.request
import httpx, requests, urllib3
from concurrent.futures import ThreadPoolExecutor
from langchain_core.tools import tool
URL = "{url}"

@tool
{"async " * ("await " in body)}def ask() -> str:
    '''Asks.'''
{indent(body.strip(), "    ")}
""",
    )
    project.write("probe.yaml", PROBE.replace("MODULE", module))
    return project.scenario("probe", "input: The wind?\ntools: {ask: real}")


def answer(outcome: Outcome) -> str:
    """Return the result of the tool."""
    assert outcome.observed.error is None, outcome.observed.error
    state = outcome.observed.state
    assert state is not None
    (text,) = [message["content"] for message in state["messages"] if message["type"] == "tool"]
    return str(text)


def latency(outcome: Outcome) -> float:
    """Return the virtual seconds that the only call of a tool took."""
    (call,) = [call for call in outcome.observed.calls if call["kind"] == "tool"]
    return float(call["latency"])


def recorded_and_replayed(project: Project, body: str, world: str = "") -> Outcome:
    """Record a run, check that the replay is equal, and return the run."""
    scenario = probing(project, body)
    with project.serving(MODEL + world):
        recorded = project.record(scenario)
    assert told(project.replay(scenario)) == told(recorded)
    return recorded


def served(json: str = "{knots: 12}", **more: str) -> str:
    keys = "".join(f", {key}: {value}" for key, value in {"times": "any", **more}.items())
    return f"http: [{{url: /wind, json: {json}{keys}}}]"


# ------------------------------------------------------------ ways to ask

GET = {
    "requests": "requests.get(URL).text",
    "urllib3": "urllib3.PoolManager().request('GET', URL).data.decode()",
    "urllib": "urllib.request.urlopen(URL).read().decode()",
    "httpx": "httpx.get(URL).text",
    "http.client": "by_http_client()",
}
BY_HTTP_CLIENT = """
def by_http_client():
    connection = http.client.HTTPConnection(URL.split("/")[2])
    connection.request("GET", "/wind")
    return connection.getresponse().read().decode()
"""

ASKED = {
    "a session with a header": "with requests.Session() as s:\n"
    "    return s.get(URL, headers={'x-station': '7'}).headers['content-type']",
    "JSON sent by requests": "return requests.post(URL, json={'city': 'Kiel'}).text",
    "a form sent by urllib": "return urllib.request.urlopen(URL, data=b'city=Kiel').read().decode()",
    "parts sent by requests": "return requests.post(URL, data=(part for part in [b'Ki', b'el'])).text",
    "a body in lines": "return '|'.join(requests.get(URL, stream=True).iter_lines(decode_unicode=True))",
    "a body in chunks": "return b'|'.join(requests.get(URL, stream=True).iter_content(4)).decode()",
    "raw bytes": "return requests.get(URL, stream=True).raw.read(5).decode()",
    "a head": "return str(requests.head(URL).status_code)",
    "urllib3's own JSON": "return str(urllib3.request('GET', URL).json())",
    "a fetch of tornado": "from tornado.httpclient import AsyncHTTPClient\n"
    "return (await AsyncHTTPClient().fetch(URL)).body.decode()",
    "JSON sent by httplib2": "import httplib2\n"
    "client = httplib2.Http()\ntext = client.request(URL, 'POST', json.dumps({'city': 'Kiel'}))[1].decode()\n"
    "client.close()\nreturn text",
    "a connection used twice": BY_HTTP_CLIENT.replace("def by_http_client():\n", "").replace("    ", "")
    + "connection.request('POST', '/wind', body='Kiel')\nreturn connection.getresponse().reason",
}


@pytest.mark.parametrize("body", ASKED.values(), ids=list(ASKED))
def test_results_of_clients_are_the_same_on_replay(project: Project, body: str) -> None:
    body = body.replace("return connection.getresponse().read().decode()", "connection.getresponse().read()")
    assert answer(recorded_and_replayed(project, body, served())) not in ("", "None")


def test_a_redirect_is_followed_on_replay(project: Project) -> None:
    world = """http:
  - {url: /wind, status: 302, headers: {location: /elsewhere}}
  - {url: /elsewhere, text: calm}
"""
    body = "r = requests.get(URL)\nreturn f'{r.text} {len(r.history)} {r.url[-9:]}'"
    assert answer(recorded_and_replayed(project, body, world)) == "calm 1 elsewhere"


def test_an_error_of_the_server_is_the_same_on_replay(project: Project) -> None:
    body = "try:\n    urllib.request.urlopen(URL)\nexcept urllib.error.HTTPError as e:\n    return f'{e} {e.read()}'"
    told_by_tool = answer(
        recorded_and_replayed(project, body, "http: [{url: /wind, status: 503, text: gale}]")
    )
    assert told_by_tool == "HTTP Error 503: Service Unavailable b'gale'"


# ------------------------------------------------------------ threads


@pytest.mark.parametrize("client", GET)
def test_requests_of_many_threads_are_all_recorded_and_replayed(project: Project, client: str) -> None:
    body = f"""
{BY_HTTP_CLIENT}
with ThreadPoolExecutor(8) as pool:
    return "|".join(pool.map(lambda _: {GET[client]}, range(8)))
"""

    def took() -> float:
        recorded = recorded_and_replayed(project, body, served(latency="0.3"))
        assert answer(recorded).count("12") == 8
        assert project.read("cassettes/it/http.yaml").count("/wind") == 8
        return latency(recorded)

    # Side by side they take as long as one, and the effect is charged in threads that know nothing of it.
    assert 0.3 <= shortest(took, below=1.5) < 1.5


def test_requests_of_one_thread_are_replayed_in_many(project: Project) -> None:
    body = f"""
with ThreadPoolExecutor(%d) as pool:
    return str(list(pool.map(lambda _: {GET["requests"]}, "x" * 8)))
"""
    scenario = probing(project, body % 1)
    with project.serving(MODEL + served()) as server:
        recorded = project.record(scenario)
    replayed = project.replay(probing(project, body % 8, server.url + "/wind"))
    assert answer(replayed) == answer(recorded)


def test_a_request_that_was_not_recorded_ends_the_run_from_a_thread_that_catches_everything(
    project: Project,
) -> None:
    body = f"""
def one(_):
    try:
        return {GET["requests"]}
    except Exception:
        return "none"
with ThreadPoolExecutor(2) as pool:
    return str(list(pool.map(one, "x" * %d)))
"""
    scenario = probing(project, body % 1)
    with project.serving(MODEL + served()) as server:
        project.record(scenario)
    replayed = project.replay(probing(project, body % 2, server.url + "/wind"))
    assert replayed.verdict == "error"
    assert replayed.observed.error is not None
    assert f"answers GET {server.url}/wind" in replayed.observed.error["message"]


# ------------------------------------------------------------ failures

FAILURES = {
    "requests.get(PLACE, timeout=0.3)": ("ConnectionError", "ReadTimeout"),
    "urllib3.PoolManager(retries=False).request('GET', PLACE, timeout=0.3)": (
        "NewConnectionError",
        "ReadTimeoutError",
    ),
    "urllib3.PoolManager(retries=0).request('GET', PLACE, timeout=0.3)": ("MaxRetryError", "MaxRetryError"),
    "urllib.request.urlopen(PLACE, timeout=0.3)": ("URLError", "TimeoutError"),
    "httpx.get(PLACE, timeout=0.3)": ("ConnectError", "ReadTimeout"),
    "plain('GET')": ("ConnectionRefusedError", "TimeoutError"),
}
CATCHING = """
PLACE = "%s/wind"
def plain(method):
    connection = http.client.HTTPConnection(PLACE.split("/")[2], timeout=0.3)
    connection.request(method, "/wind")
    return connection.getresponse()
try:
    %s
except Exception as error:
    reason = getattr(error, "reason", None) or getattr(error.args[0], "reason", "")
    return f"{type(error).__name__}|{error}|{type(reason).__name__}|{reason}"
"""


@pytest.mark.parametrize("call", FAILURES)
@pytest.mark.parametrize("kind", [0, 1], ids=["refused", "silent"])
def test_a_failure_that_a_tool_catches_is_the_same_on_replay(project: Project, call: str, kind: int) -> None:
    with silent_url() as silent:
        place = silent if kind else refusing_url()
        recorded = recorded_and_replayed(project, CATCHING % (place, call))
    assert answer(recorded).split("|")[0] == FAILURES[call][kind]
    assert latency(recorded) >= (0.3 if kind else 0)


def test_a_request_after_a_failed_one_has_its_own_duration(project: Project) -> None:
    body = """
try:
    requests.get("%s", timeout=0.5)
except requests.Timeout:
    return requests.get(URL).text
"""
    with silent_url() as silent:

        def took() -> float:
            return latency(recorded_and_replayed(project, body % silent, served()))

        assert 0.5 <= shortest(took, below=1.0) < 1.0


@contextmanager
def broken_body() -> Iterator[str]:
    """Yield a URL whose answer claims to be compressed and is not."""
    with loopback(CannedReply(text="not gzip", headers={"content-encoding": "gzip"})) as server:
        yield server.url


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("requests.get(PLACE)", "ContentDecodingError"),
        ("urllib3.request('GET', PLACE)", "DecodeError"),
        ("httpx.get(PLACE)", "DecodingError"),
    ],
)
def test_a_body_that_cannot_be_read_fails_where_it_did(project: Project, call: str, named: str) -> None:
    with broken_body() as place:
        recorded = recorded_and_replayed(project, CATCHING % (place, call))
    assert answer(recorded).split("|")[0] == named


def test_a_body_that_an_api_node_cannot_read_fails_again_on_replay(project: Project) -> None:
    with broken_body() as place:
        project.replace("tide.yaml", "http://served.test", place)
        scenario = project.scenario("tide", "input: {harbour: brest}\nexpect: {status: failed}")
        recorded = project.record(scenario)
    assert recorded.observed.error is not None
    assert recorded.observed.error["type"] == "DecodingError"
    assert told(project.replay(scenario)) == told(recorded)


# ------------------------------------------------------------ aiohttp, where it is installed

BY_AIOHTTP = """
import aiohttp
async with aiohttp.ClientSession() as session:
    async def one(path):
        try:
            async with session.get(URL + path) as response:
                return await response.text()
        except aiohttp.ClientError as error:
            return f"{type(error).__name__} {error}"
    return "|".join(await asyncio.gather(one(""), one("/slow"), one("/../moved")))
"""


def test_overlapping_requests_of_aiohttp_have_their_own_durations(project: Project) -> None:
    pytest.importorskip("aiohttp")
    world = """http:
  - {url: /wind, text: calm, latency: 0.7}
  - {url: /wind/slow, text: gale, latency: 0.8}
  - {url: /moved, status: 302, headers: {location: /wind/there}}
  - {url: /wind/there, text: breeze}
"""

    def took() -> float:
        recorded = recorded_and_replayed(project, BY_AIOHTTP, world)
        assert answer(recorded) == "calm|gale|breeze"
        return latency(recorded)

    assert 0.8 <= shortest(took, below=1.5) < 1.5


def test_a_failure_of_aiohttp_is_the_same_on_replay(project: Project) -> None:
    pytest.importorskip("aiohttp")
    body = BY_AIOHTTP.replace("URL + path", f"'{refusing_url()}' + path")
    assert answer(recorded_and_replayed(project, body)).count("ClientConnectorError Cannot connect") == 3


SENT_BY_AIOHTTP = """
import aiohttp, io
async def parts():
    for part in (b'{"city": ', b'"Kiel"}'):
        yield part
upload = aiohttp.FormData({"city": "Kiel"})
upload.add_field("map", io.BytesIO(b"a map"), filename="map.txt")
async with aiohttp.ClientSession() as session, session.request("post", URL, %s) as response:
    return await response.text()
"""
KIEL = "args: {json: {city: Kiel}}"
BODIES = {
    "json": ("json={'city': 'Kiel'}", KIEL),
    "a form": ("data={'city': 'Kiel'}", "args: {text: city=Kiel}"),
    "an upload": ("data=upload", "args: {text: {$contains: a map}}"),
    "bytes": ('data=b\'{"city": "Kiel"}\'', KIEL),
    "parts": ("data=parts()", KIEL),
    "parameters": ("params={'city': 'Kiel'}", "args: {query: {city: Kiel}}"),
}


@pytest.mark.parametrize(("body", "args"), BODIES.values(), ids=BODIES)
def test_a_body_of_aiohttp_is_sent_recorded_and_replayed(project: Project, body: str, args: str) -> None:
    pytest.importorskip("aiohttp")
    world = f"http: [{{method: POST, url: /wind, {args}, text: calm}}]"
    assert answer(recorded_and_replayed(project, SENT_BY_AIOHTTP % body, world)) == "calm"


def test_a_recorded_body_of_aiohttp_answers_no_other(project: Project) -> None:
    pytest.importorskip("aiohttp")
    scenario = probing(project, SENT_BY_AIOHTTP % "json={'city': 'Kiel', 'days': 2}")
    with project.serving(MODEL + served()) as server:
        project.record(scenario)
    other = probing(project, SENT_BY_AIOHTTP % "json={'city': 'Kiel', 'days': 3}", server.url + "/wind")
    error = project.replay(other).observed.error
    assert error is not None
    assert error["type"] == "CassetteMismatch"
    assert "days: [-2-]{+3+}" in error["message"]
