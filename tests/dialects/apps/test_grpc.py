"""Clients over gRPC, as those of Gemini and of vector stores: no stub can write their answers."""

from tests.dialects.apps.conftest import RunApp, error_of

APP = {
    # What a call of gRPC goes through. The package itself need not be installed.
    "grpc/__init__.py": "",
    "grpc/_channel.py": """
        class _UnaryUnaryMultiCallable:
            def __init__(self, method):
                self._method = method

            def __call__(self, request):
                return self._blocking(request)

            def _blocking(self, request):
                raise RuntimeError("it went to the network")

            def future(self, request):
                raise RuntimeError("it went to the network")


        class Address:
            def target(self):
                return b"localhost:19530"


        class Channel:
            _channel = Address()

            def subscribe(self, callback):
                raise RuntimeError("it went to the network")
    """,
    "grpc/aio/__init__.py": "",
    "grpc/aio/_channel.py": """
        class UnaryUnaryMultiCallable:
            def __init__(self, method):
                self._method = method

            def __call__(self, request):
                raise RuntimeError("it went to the network")
    """,
    "app.py": """
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        from grpc._channel import Channel, _UnaryUnaryMultiCallable
        from grpc.aio._channel import UnaryUnaryMultiCallable


        class Gemini(BaseChatModel):
            model: str = "gemini"

            @property
            def _llm_type(self):
                return "gemini"

            def _generate(self, messages, *args, **options):
                try:
                    _UnaryUnaryMultiCallable(b"/models.Service/Generate")(messages)
                except Exception:  # a client retries
                    _UnaryUnaryMultiCallable(b"/models.Service/Generate")(messages)

            async def _agenerate(self, messages, *args, **options):
                await UnaryUnaryMultiCallable(b"/models.Service/Generate")(messages)


        def ask(question):
            return Gemini().invoke(question).content


        async def ask_async(question):
            return (await Gemini().ainvoke(question)).content


        def search(question):
            return _UnaryUnaryMultiCallable(b"/vectors.Store/Search").future(question)


        def connect(question):
            return Channel().subscribe(print)
    """,
}


def test_a_chat_model_over_grpc_is_answered(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:ask
        defaults: {input: hi, llm: [{reply: hello, latency: 2}]}
        scenarios:
          - {name: blocking, expect: {output: hello, calls: [{llm: gemini}], latency: {total: 2}}}
          - {name: async, manifest: "app.py:ask_async", expect: {output: hello, latency: {total: 2}}}
        """,
        APP,
    )
    assert {name: one.checks for name, one in found.items() if not one.passed} == {}


def test_any_other_call_is_refused_by_its_name(run_app: RunApp) -> None:
    found = run_app(
        """
        manifest: app.py:search
        defaults: {input: hi}
        scenarios:
          - {name: no stub}
          - {name: a connection, manifest: "app.py:connect"}
          - {name: a stub that would fit, http: [{url: "*", text: found}]}
        """,
        APP,
    )
    assert "grpc://vectors.Store/Search" in error_of(found["no stub"])
    assert "grpc://localhost:19530" in error_of(found["a connection"])
    assert "gRPC" in error_of(found["a stub that would fit"])
