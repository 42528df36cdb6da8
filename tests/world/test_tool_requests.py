"""HTTP requests of real tools in this process: their answers, their timing, and their trace."""

import asyncio
from fnmatch import fnmatch

import pytest

from harness.interception.interceptor import Interceptor, Place
from harness.interception.messages import PreparedReply, Request, SendResult
from harness.interception.real_effects import charge_since, current_effects, within_effect
from harness.time.clock import VirtualTimeLoop
from harness.time.real import real
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec
from harness.world.tool_requests import ToolRequests
from tests.world.tool_runs import CAUGHT, Run, found, http_calls

# Each client gets https://shop.test/items?q=plum, with whatever headers and time-outs it has by itself.
CLIENTS = {
    "httpx": 'import httpx\nreturn {"found": httpx.get(URL).text}',
    "httpx_async": """\
import httpx
async with httpx.AsyncClient() as client:
    return {"found": (await client.get(URL)).text}""",
    "requests": 'import requests\nreturn {"found": requests.get(URL).text}',
    "urllib3": 'import urllib3\nreturn {"found": urllib3.PoolManager().request("GET", URL).data.decode()}',
    "urllib": 'import urllib.request\nreturn {"found": urllib.request.urlopen(URL).read().decode()}',
    "http_client": """\
import http.client
connection = http.client.HTTPSConnection("shop.test")
connection.request("GET", "/items?q=plum")
return {"found": connection.getresponse().read().decode()}""",
    "aiohttp": """\
import aiohttp
async with aiohttp.ClientSession() as session, session.get(URL) as response:
    return {"found": await response.text()}""",
    "curl_cffi": 'import curl_cffi.requests\nreturn {"found": curl_cffi.requests.get(URL).text}',
    "curl_cffi_async": """\
from curl_cffi.requests import AsyncSession
async with AsyncSession() as session:
    return {"found": (await session.get("https://shop.test/items", params={"q": "plum"})).text}""",
    "primp": 'import primp\nreturn {"found": primp.Client(params={"q": "plum"}).get("https://shop.test/items").text}',
    "primp_function": 'import primp\nreturn {"found": primp.request("GET", URL).text}',
    "primp_async": """\
import primp
return {"found": (await primp.AsyncClient().get("https://shop.test/items", {"q": "plum"})).text}""",
}
CLIENTS = {name: body.replace("URL", '"https://shop.test/items?q=plum"') for name, body in CLIENTS.items()}
ANY_CLIENT = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)

STUB = """
http:
  - {method: GET, url: "https://shop.test/*", args: {query: {q: plum}}, text: 3 plums}
"""


# ------------------------------------------------------------ http stubs


@ANY_CLIENT
def test_http_stubs_answer_the_clients_of_real_tools(run_tool: Run, client: str) -> None:
    outcome = run_tool(client, STUB)
    assert found(outcome) == "3 plums"
    (call,) = http_calls(outcome)
    assert (call["name"], call["node"], call["ok"]) == ("https://shop.test/items", "fetch", True)


@ANY_CLIENT
def test_the_latency_of_a_stub_is_virtual_time_of_the_node(run_tool: Run, client: str) -> None:
    outcome = run_tool(client, STUB.replace("text:", "latency: 2.5, text:"))
    assert outcome.observed.latency["nodes"] == {"fetch": 2.5}
    assert http_calls(outcome)[0]["latency"] == 2.5


def test_a_time_out_of_0_is_no_limit_to_aiohttp(run_tool: Run) -> None:
    client = CLIENTS["aiohttp"].replace("()", "(timeout=aiohttp.ClientTimeout(total=0))", 1)
    outcome = run_tool(client, STUB.replace("text:", "latency: 2.5, text:"))
    assert found(outcome) == "3 plums"
    assert outcome.observed.latency["nodes"] == {"fetch": 2.5}


GIVEN_UP = """\
import http.client
connection = http.client.HTTPSConnection("shop.test")
connection.request("POST", "/orders", body="3 pears")
connection.close()
connection.request("GET", "/items?q=plum")
return {"found": connection.getresponse().read().decode()}"""


def test_a_connection_that_was_closed_forgets_the_request_that_was_given_up(run_tool: Run) -> None:
    outcome = run_tool(GIVEN_UP, STUB)
    assert found(outcome) == "3 plums"
    assert [call["name"] for call in http_calls(outcome)] == ["https://shop.test/items"]


@ANY_CLIENT
def test_an_unanswered_request_ends_the_run_whatever_the_tool_catches(run_tool: Run, client: str) -> None:
    lines = "".join(f"    {line}\n" for line in client.splitlines())
    outcome = run_tool(
        f'try:\n{lines}except Exception:\n    return {{"found": "absorbed"}}', STUB.replace("plum}", "pear}")
    )
    assert outcome.observed.status == "failed"
    error = outcome.observed.error or {}
    assert (error["type"], error["node"]) == ("UnscriptedCall", "fetch")
    assert "nothing answers http https://shop.test/items(" in error["message"]
    assert "nearest stub: http: text: '3 plums'" in error["message"]
    assert "args.query.q" in error["message"]


# ------------------------------------------------------------ bodies and methods

SENT_BY_AIOHTTP = """\
import io
import aiohttp
async def parts():
    for part in (b'{{"email": "a@b.c"', b', "limit": 2}}'):
        yield part
form = aiohttp.FormData({{"email": "a@b.c", "limit": "2"}})
upload = aiohttp.FormData({{"limit": "2"}})
upload.add_field("list", io.BytesIO(b"3 plums"), filename="list.txt")
async with aiohttp.ClientSession({session}) as session:
    async with session.request("post", {url}, {body}) as response:
        return {{"found": await response.text(), "more": str(response.url)}}"""

JSON, FORM = "json: {email: a@b.c, limit: 2}", "json: null, text: email=a%40b.c&limit=2"
AIOHTTP_BODIES = {
    "json": ('json={"email": "a@b.c", "limit": 2}', JSON, "application/json"),
    "a form": ('data={"email": "a@b.c", "limit": "2"}', FORM, "application/x-www-form-urlencoded"),
    "FormData": ("data=form", FORM, "application/x-www-form-urlencoded"),
    "an upload": ("data=upload", 'text: {$regex: "(?s).*3 plums.*"}', "multipart/form-data; boundary=*"),
    "bytes": ('data=b\'{"email": "a@b.c", "limit": 2}\'', JSON, "application/octet-stream"),
    "text": ('data=\'{"email": "a@b.c", "limit": 2}\'', JSON, "text/plain; charset=utf-8"),
    "parts": ("data=parts()", JSON, "application/octet-stream"),
    "a type of its own": (
        'data="limit=2", headers={"Content-Type": "text/csv"}',
        "text: limit=2",
        "text/csv",
    ),
    "no body": ('params={"limit": 2}', 'text: "", query: {limit: "2"}', None),
}


@pytest.mark.parametrize(("body", "args", "content_type"), AIOHTTP_BODIES.values(), ids=AIOHTTP_BODIES)
def test_http_stubs_see_the_body_that_aiohttp_sends(
    run_tool: Run, body: str, args: str, content_type: str | None
) -> None:
    client = SENT_BY_AIOHTTP.format(session="", url='"https://shop.test/find"', body=body)
    outcome = run_tool(client, f'http: [{{url: "https://shop.test/find", args: {{{args}}}, text: 3 plums}}]')
    assert found(outcome) == "3 plums"
    sent = http_calls(outcome)[0]["args"]
    assert sent["method"] == "POST"
    shown = sent["headers"].get("content-type")
    assert fnmatch(shown, content_type) if content_type else shown is None


def test_a_request_of_aiohttp_has_the_base_url_of_its_session(run_tool: Run) -> None:
    client = SENT_BY_AIOHTTP.format(session='"https://shop.test"', url='"/find"', body="json={}")
    outcome = run_tool(client, 'http: [{url: "https://shop.test/find", text: 3 plums}]')
    assert (found(outcome), outcome.observed.state["more"]) == ("3 plums", "https://shop.test/find")


ASKING = """\
import json
URL = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "gpt-4o", "messages": [{"role": "user", "content": "plums?"}]}
"""
LOWER_CASE = {
    "httpx": 'import httpx\nanswer = httpx.request("post", URL, json=ASKED).json()',
    "httpx_async": """\
import httpx
async with httpx.AsyncClient() as client:
    answer = (await client.request("post", URL, json=ASKED)).json()""",
    "requests": 'import requests\nanswer = requests.request("post", URL, json=ASKED).json()',
    "urllib3": """\
import urllib3
pool = urllib3.PoolManager().connection_from_url(URL)
answer = pool.urlopen("post", "/v1/chat/completions", body=json.dumps(ASKED)).json()""",
    "urllib": """\
import urllib.request
request = urllib.request.Request(URL, json.dumps(ASKED).encode(), method="post")
answer = json.loads(urllib.request.urlopen(request).read())""",
    "http_client": """\
import http.client
connection = http.client.HTTPSConnection("api.openai.com")
connection.request("post", "/v1/chat/completions", body=json.dumps(ASKED))
answer = json.loads(connection.getresponse().read())""",
    "aiohttp": """\
import aiohttp
async with aiohttp.ClientSession() as session, session.request("post", URL, json=ASKED) as response:
    answer = await response.json()""",
}


@pytest.mark.parametrize("client", LOWER_CASE.values(), ids=LOWER_CASE)
def test_a_method_in_lower_case_makes_a_model_call(run_tool: Run, client: str) -> None:
    outcome = run_tool(
        f'{ASKING}{client}\nreturn {{"found": answer["choices"][0]["message"]["content"]}}',
        "llm: [{model: gpt-4o, when: 'request.prompt == \"plums?\"', reply: 3 plums}]",
    )
    assert found(outcome) == "3 plums"


# ------------------------------------------------------------ errors


REFUSED = {
    "httpx": "httpx.ConnectError",
    "httpx_async": "httpx.ConnectError",
    "requests": "requests.ConnectionError",
    "urllib3": "urllib3.MaxRetryError",
    "urllib": "urllib.URLError",
    "http_client": "builtins.ConnectionRefusedError",
    "aiohttp": "aiohttp.ClientConnectorError",
    "curl_cffi": "curl_cffi.ConnectionError",
    "curl_cffi_async": "curl_cffi.ConnectionError",
    "primp": "primp.ConnectError",
    "primp_function": "primp.ConnectError",
    "primp_async": "primp.ConnectError",
}
TIMED_OUT = {
    "httpx": "httpx.ReadTimeout",
    "httpx_async": "httpx.ReadTimeout",
    "requests": "requests.ReadTimeout",
    "urllib3": "urllib3.ReadTimeoutError",
    "urllib": "builtins.TimeoutError",
    "http_client": "builtins.TimeoutError",
    "aiohttp": "aiohttp.ServerTimeoutError",
    "curl_cffi": "curl_cffi.ReadTimeout",
    "curl_cffi_async": "curl_cffi.ReadTimeout",
    "primp": "primp.TimeoutError",
    "primp_function": "primp.TimeoutError",
    "primp_async": "primp.TimeoutError",
}


def caught(client: str) -> str:
    return CAUGHT.format("".join(f"    {line}\n" for line in CLIENTS[client].splitlines()))


@pytest.mark.parametrize(
    ("client", "kind", "raised"),
    [
        *((client, "connection", raised) for client, raised in REFUSED.items()),
        *((client, "timeout", raised) for client, raised in TIMED_OUT.items()),
    ],
)
def test_an_error_is_the_exception_that_the_client_itself_raises(
    run_tool: Run, client: str, kind: str, raised: str
) -> None:
    outcome = run_tool(caught(client), STUB.replace("text: 3 plums", f"error: {kind}"))
    assert raised in found(outcome).split()
    assert http_calls(outcome)[0]["ok"] is False


@pytest.mark.parametrize("client", CLIENTS)
def test_an_exception_is_raised_as_it_is(run_tool: Run, client: str) -> None:
    error = "error: {kind: exception, type: LookupError, message: no plums}"
    outcome = run_tool(caught(client), STUB.replace("text: 3 plums", error))
    assert outcome.observed.state["more"] == "no plums"
    assert "builtins.LookupError" in found(outcome).split()


class Upstream(Interceptor):
    """An upstream, such as a recorder, that lets the client send every request."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def claim(self, request: Request) -> PreparedReply | None:
        self.asked.append(request)
        return None

    def begin(self, request: Request) -> Place:
        raise AssertionError(request)

    def received(self, place: Place, sent: SendResult, seconds: float) -> None:
        raise AssertionError(sent)

    def end(self, place: Place, sent: SendResult, seconds: float) -> None:
        raise AssertionError(sent)

    def drop(self, place: Place) -> None:
        raise AssertionError(place)


def test_a_model_call_that_stubs_cannot_read_is_left_to_the_real_provider() -> None:
    upstream = Upstream()
    body = b'{"model": "gpt-4o", "n": 2, "messages": [{"role": "user", "content": "plums?"}]}'
    request = Request("POST", "https://api.openai.com/v1/chat/completions", {}, body)
    assert ToolRequests(ScriptedWorld(WorldSpec()), {}, upstream).claim(request) is None
    assert upstream.asked == [request]


STATUS = """\
import httpx
answers = [httpx.get("https://shop.test/items?q=plum") for _ in range(3)]
return {"found": " ".join(str(answer.status_code) for answer in answers), "more": answers[0].headers["retry-after"]}
"""


def test_other_errors_are_statuses_and_stubs_are_taken_in_order(run_tool: Run) -> None:
    outcome = run_tool(
        STATUS,
        """
http:
  - {url: "https://shop.test/*", error: {kind: rate_limit, retry_after: 2}}
  - {url: "https://shop.test/*", error: server_error}
  - {url: "https://shop.test/*", status: 404, json: {items: []}}
""",
    )
    assert (found(outcome), outcome.observed.state["more"]) == ("429 500 404", "2")


def test_a_latency_beyond_the_time_out_of_the_client_is_its_time_out(run_tool: Run) -> None:
    client = (
        'import requests\nreturn {"found": requests.get("https://shop.test/items?q=plum", timeout=2).text}'
    )
    lines = "".join(f"    {line}\n" for line in client.splitlines())
    outcome = run_tool(CAUGHT.format(lines), STUB.replace("text:", "latency: 3, text:"))
    assert "requests.ReadTimeout" in found(outcome).split()
    assert outcome.observed.latency["nodes"] == {"fetch": 2}


def test_latencies_of_blocking_clients_add_up(run_tool: Run) -> None:
    twice = """\
import requests
for _ in range(2):
    text = requests.get("https://shop.test/items?q=plum").text
return {"found": text}"""
    outcome = run_tool(twice, STUB.replace("text:", "latency: 1, times: any, text:"))
    assert outcome.observed.latency["nodes"] == {"fetch": 2}
    assert outcome.trace is not None
    events = [event for event in outcome.trace.rendered() if event["event"] in ("call", "answer")]
    assert [event["at"] for event in events] == [0, 0, 1, 1, 2, 2]  # the handler's own call is around them


def test_latencies_of_waiting_clients_pass_side_by_side(run_tool: Run) -> None:
    together = """\
import asyncio, httpx
async with httpx.AsyncClient() as client:
    got = await asyncio.gather(*(client.get("https://shop.test/items?q=plum") for _ in range(2)))
    return {"found": got[0].text}"""
    outcome = run_tool(together, STUB.replace("text:", "latency: 1, times: any, text:"))
    assert outcome.observed.latency["nodes"] == {"fetch": 1}


def test_a_request_in_a_thread_belongs_to_the_effect_that_is_under_way(run_tool: Run) -> None:
    threads = """\
from concurrent.futures import ThreadPoolExecutor
import requests
with ThreadPoolExecutor(2) as pool:
    got = pool.map(requests.get, ["https://shop.test/items?q=plum"] * 2)
    return {"found": " ".join(response.text for response in got)}"""
    outcome = run_tool(threads, STUB.replace("text:", "times: any, text:"))
    assert found(outcome) == "3 plums 3 plums"
    assert [call["node"] for call in http_calls(outcome)] == ["fetch", "fetch"]


def test_faults_strike_requests_of_tools(run_tool: Run) -> None:
    fault = (
        "faults: [{effect: http, name: 'https://shop.test/*', nth: 1, error: connection}]\nallow_unused: true"
    )
    outcome = run_tool(caught("requests"), STUB + fault)
    assert "requests.ConnectionError" in found(outcome).split()


def test_a_stub_that_no_tool_used_is_reported(run_tool: Run) -> None:
    outcome = run_tool('return {"found": "nothing"}', STUB)
    assert [text.partition(" (")[0] for text in outcome.observed.unused] == [
        "never used: http: text: '3 plums'"
    ]


def test_headers_that_carry_keys_are_in_no_trace(run_tool: Run) -> None:
    client = (
        'import requests\nheaders = {"Authorization": "Bearer sk-planted"}\n'
        'return {"found": requests.get("https://shop.test/items?q=plum", headers=headers).text}'
    )
    stub = STUB.replace("{query: {q: plum}}", "{headers: {authorization: Bearer sk-planted}}")
    outcome = run_tool(client, stub)
    assert found(outcome) == "3 plums"
    assert outcome.trace is not None
    assert "sk-planted" not in str(list(outcome.trace.rendered()))


def test_without_http_and_llm_stubs_the_network_is_closed(run_tool: Run) -> None:
    outcome = run_tool(caught("urllib"), "")
    assert any("the network is closed" in warning for warning in outcome.observed.warnings)


def test_a_run_has_the_same_digest_each_time(run_tool: Run) -> None:
    def digest() -> str:
        trace = run_tool(CLIENTS["requests"], STUB).trace
        assert trace is not None
        return trace.digest()

    assert digest() == digest()


@pytest.mark.parametrize(("owned", "seconds"), [(True, 3.0), (False, 0.0)])
def test_real_time_is_charged_to_the_effect_in_which_a_request_began(owned: bool, seconds: float) -> None:
    """That of telemetry, which is at work beside the effects, is charged to none."""

    async def work() -> None:
        charge_since(real.monotonic() - 3, current_effects() if owned else [])

    async def main() -> float:
        await within_effect(work)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(main()) == pytest.approx(seconds, abs=0.1)
