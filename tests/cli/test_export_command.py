"""`harness export`: runs as OpenTelemetry spans, to a collector or a file."""

import gzip
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.cli.fixtures import Invoke, WriteFile, WriteSuite

ASKS = "{name: asks, manifest: asking.yaml, input: my question, env: {MODEL: gpt-4o}, llm: {ask: [my reply]}}"
COUNTS = "{name: counts, expect: {state: {count: 2}}}"


class Receiver:
    """A collector on the loopback interface: it keeps what it receives, and answers with `status` and `rejected`."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.paths: list[str] = []
        self.headers: list[Any] = []
        self.status, self.rejected = 200, 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.requests.append(ExportTraceServiceRequest.FromString(body))
                receiver.paths.append(self.path)
                receiver.headers.append(self.headers)
                answer = ExportTraceServiceResponse()
                answer.partial_success.rejected_spans = receiver.rejected
                answer.partial_success.error_message = "too old" if receiver.rejected else ""
                self.send_response(receiver.status)
                self.send_header("content-type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(answer.SerializeToString() if receiver.status == 200 else b"no \x1b[31mkey")

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")


@pytest.fixture
def run(suite: WriteSuite, invoke: Invoke) -> None:
    suite(ASKS, COUNTS)
    invoke("run", ".", "-q")


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def test_each_run_is_sent_to_the_collector_as_a_trace(run: None, invoke: Invoke, receiver: Receiver) -> None:
    result = invoke("export", "--otlp", receiver.url)
    assert (result.exit_code, result.stdout) == (0, "2 traces, 5 spans\n")
    assert receiver.paths == ["/v1/traces"]
    assert [span.name for span in receiver.spans] == [
        "invoke_agent asking", "node ask", "chat gpt-4o", "invoke_agent counter", "node add",
    ]  # fmt: skip
    asked, node, chat, counted, _ = receiver.spans
    assert len({span.trace_id for span in receiver.spans}) == 2
    assert len({span.span_id for span in receiver.spans}) == 5
    assert [node.parent_span_id, chat.parent_span_id] == [asked.span_id, node.span_id]
    assert not asked.parent_span_id
    assert chat.kind == 3  # client
    assert chat.start_time_unix_nano == 1_767_225_600 * 10**9
    assert _attributes(chat.attributes)["gen_ai.provider.name"] == "openai"
    assert _attributes(counted.attributes)["test.case.result.status"] == "fail"
    [result_of_check] = [
        event
        for event in counted.events
        if _attributes(event.attributes).get("gen_ai.evaluation.name") == "state"
    ]
    assert _attributes(result_of_check.attributes)["gen_ai.evaluation.score.label"] == "fail"
    resource = _attributes(receiver.requests[0].resource_spans[0].resource.attributes)
    assert (resource["service.name"], resource["harness.time"]) == ("harness", "virtual")


def test_environment_variables_of_opentelemetry_are_respected(
    run: None, invoke: Invoke, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "desk")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=pottery")
    invoke("export", "--otlp", f"{receiver.url}/api/v1/traces/")
    assert receiver.paths == ["/api/v1/traces"]
    assert receiver.headers[0]["x-team"] == "pottery"
    resource = _attributes(receiver.requests[0].resource_spans[0].resource.attributes)
    assert resource["service.name"] == "desk"


def test_an_exported_file_has_the_same_spans_and_is_reproducible(
    run: None, invoke: Invoke, receiver: Receiver
) -> None:
    invoke("export", "--otlp", receiver.url)
    assert invoke("export", "--file", "one.jsonl").stdout == "2 traces, 5 spans\n"
    invoke("run", ".", "-q")
    printed = invoke("export", "--file", "-")
    text = Path("one.jsonl").read_text(encoding="utf-8")
    assert (printed.stdout, printed.stderr) == (text, "2 traces, 5 spans\n")
    [request] = map(json.loads, text.splitlines())
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [(span["traceId"], span["spanId"], span["name"]) for span in spans] == [
        (span.trace_id.hex(), span.span_id.hex(), span.name) for span in receiver.spans
    ]
    assert spans[2]["parentSpanId"] == spans[1]["spanId"]
    assert (spans[2]["kind"], spans[2]["startTimeUnixNano"]) == (3, "1767225600000000000")


def test_message_contents_are_exported_only_on_request(run: None, invoke: Invoke) -> None:
    without = invoke("export", "--file", "-").stdout
    assert "my question" not in without
    assert "my reply" not in without
    assert "expected 2" not in without
    with_content = invoke("export", "--file", "-", "--content").stdout
    assert r"{\"type\":\"text\",\"content\":\"my question\"}" in with_content
    assert r"\"content\":\"my reply\"" in with_content
    assert "expected 2" in with_content


@pytest.mark.parametrize(
    ("start", "nanoseconds"),
    [("2026-01-31T12:00:00Z", 1_769_860_800 * 10**9), ("2026-01-31T12:00:00.5", 1_769_860_800_500_000_000)],
)
def test_virtual_time_starts_at_the_given_time(
    run: None, invoke: Invoke, start: str, nanoseconds: int
) -> None:
    assert f'"startTimeUnixNano":"{nanoseconds}"' in invoke("export", "--file", "-", "--start", start).stdout


@pytest.mark.parametrize("start", ["tomorrow", "1969-12-31T00:00:00Z", ""])
def test_an_invalid_start_time_is_refused(run: None, invoke: Invoke, start: str) -> None:
    assert invoke("export", "--file", "x", "--start", start).exit_code == 2


def test_an_unreachable_collector_is_an_error_with_the_reason(run: None, invoke: Invoke) -> None:
    result = invoke("export", "--otlp", "http://user:word@127.0.0.1:9")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: the spans did not reach the collector at 127.0.0.1:9: Connection refused [otlp-failed]\n"
    )


def test_an_error_response_of_the_collector_is_shown(run: None, invoke: Invoke, receiver: Receiver) -> None:
    receiver.status = 401
    result = invoke("export", "--otlp", receiver.url)
    assert result.exit_code == 2
    assert "it answered 401 Unauthorized: no \\x1b[31mkey [otlp-failed]\n" in result.stderr


def test_spans_that_the_collector_rejects_are_reported(run: None, invoke: Invoke, receiver: Receiver) -> None:
    receiver.rejected = 3
    result = invoke("export", "--otlp", receiver.url)
    assert result.exit_code == 2
    assert "did not take 3 spans: too old [otlp-failed]\n" in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "say where the spans go: --otlp URL or --file FILE"),
        (("--otlp", "http://x", "--file", "y"), "say where the spans go"),
        (
            ("--otlp", "localhost:4318"),
            "'localhost:4318' is not the address of a collector, such as http://localhost:4318",
        ),
        (("--file", "nowhere/x"), "nowhere/x cannot be written: No such file or directory"),
        (("nothing", "--file", "x"), "cannot read the results nothing"),
    ],
)
def test_an_invalid_argument_is_an_error(
    run: None, invoke: Invoke, options: tuple[str, ...], told: str
) -> None:
    result = invoke("export", *options)
    assert result.exit_code == 2
    assert told in result.stderr


def test_runs_without_a_trace_are_reported(invoke: Invoke, suite: WriteSuite, write: WriteFile) -> None:
    suite(COUNTS, "{name: later, skip: not yet}", "{name: refused, manifest: nowhere.yaml}")
    invoke("run", ".", "-q")
    result = invoke("export", "--file", "x")
    assert (result.exit_code, result.stdout) == (0, "1 trace, 2 spans\n")
    assert result.stderr == "without a trace: 2 runs that never began\n"
    invoke("run", ".", "-q", "--traces", "none")
    result = invoke("export", "--file", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "without a trace: 1 run that did not keep it\n" in result.stderr
    assert (
        "error: no run in reports/latest has a trace [trace-missing]\n    run with --traces all"
        in result.stderr
    )


def test_the_readable_part_of_a_damaged_trace_is_exported_with_a_warning(run: None, invoke: Invoke) -> None:
    first, second = sorted(Path("reports/latest/traces").iterdir())
    first.write_bytes(first.read_bytes()[:-20])
    second.unlink()
    result = invoke("export", "--file", "x")
    assert (result.exit_code, result.stdout[:8]) == (2, "1 trace,")
    assert "trace-damaged" in result.stderr


def test_an_invalid_trace_is_reported_and_the_others_are_exported(run: None, invoke: Invoke) -> None:
    first, _ = sorted(Path("reports/latest/traces").iterdir())
    head, *_ = gzip.decompress(first.read_bytes()).splitlines(keepends=True)
    first.write_bytes(gzip.compress(head + b'{"event":"node_start"}\n'))
    result = invoke("export", "--file", "x")
    assert (result.exit_code, result.stdout) == (2, "1 trace, 2 spans\n")
    assert "traces/1.jsonl.gz is not the trace of a run: it has no 'graph' [trace-damaged]" in result.stderr


@pytest.mark.parametrize(
    "missing", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"]
)
def test_a_missing_extra_is_named_with_the_command_to_install_it(
    run: None, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    result = invoke("export", "--file", "x")
    assert result.exit_code == 2
    assert 'pip install "agent-scenarios[otel]"' in result.stderr


def test_a_run_sends_no_spans(
    suite: WriteSuite, invoke: Invoke, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.setenv(name, receiver.url)
    suite(ASKS)
    assert invoke("run", ".").exit_code == 0
    assert invoke("export", "--file", "x").exit_code == 0
    assert receiver.requests == []
