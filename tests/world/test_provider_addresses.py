"""The addresses of providers that the live clients use, and the errors for missing ones."""

import asyncio
import sys

import pytest

from harness.errors import ExtraMissing, KeyMissing, ProviderError
from harness.graph.effects import LLMCall
from harness.world.providers import Access, Providers
from tests.world.loopback import loopback, refusing_url
from tests.world.providers import ask, ask_with, body, call, claude, completion, message, sent, text

# ------------------------------------------------------------ where providers are


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_the_environment_has_the_address_of_openai(variable: str) -> None:
    with loopback(completion()) as server:
        assert ask_with(Access({"OPENAI_API_KEY": "k", variable: f"{server.url}/v1"}), call()).text == "hi"


def test_the_environment_has_the_address_of_anthropic() -> None:
    with loopback(message(text("hi"))) as server:
        asked = call(name="claude-test", provider="anthropic")
        assert ask(asked, ANTHROPIC_BASE_URL=server.url).text == "hi"


def test_the_variables_with_addresses_that_were_used_are_known() -> None:
    async def places(access: Access, *calls: LLMCall) -> dict[str, str]:
        providers = Providers(access)
        for each in calls:
            await providers.ask(each)
        await providers.close()
        return providers.address_variables

    with loopback(completion()) as server:
        url = f"{server.url}/v1"
        access = Access({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k", "VLLM_BASE_URL": "unused"})
        assert asyncio.run(places(access, call())) == {"OPENAI_BASE_URL": url}
        assert asyncio.run(places(access, call(server))) == {}


def test_the_manifest_takes_precedence_over_the_environment() -> None:
    with loopback(completion("manifest")) as server:
        assert ask(call(server), OPENAI_BASE_URL=refusing_url()).text == "manifest"


@pytest.mark.parametrize("provider", ["openai_compatible", "vllm", "ollama", "some-gateway"])
def test_a_compatible_server_needs_no_key_and_its_url_no_scheme_or_path(provider: str) -> None:
    with loopback(completion()) as server:
        address = server.url.removeprefix("http://")
        ask_with(Access({"OPENAI_API_KEY": "sk-openai"}), call(provider=provider, base_url=address))
        (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert "sk-openai" not in str(asked.headers)


def test_the_path_of_a_url_stays() -> None:
    with loopback(completion()) as server:
        ask(call(provider="vllm", base_url=f"{server.url}/llm/v2/"))
        assert server.asked[0].path == "/llm/v2/chat/completions"


def test_a_compatible_server_may_have_a_key() -> None:
    with loopback(completion()) as server:
        ask(call(server, provider="some-gateway"), SOME_GATEWAY_API_KEY="k1")
        ask(call(server, provider="some-gateway", api_key="k2"), SOME_GATEWAY_API_KEY="k1")
        assert [each.headers["authorization"] for each in server.asked] == ["Bearer k1", "Bearer k2"]


@pytest.mark.parametrize(
    ("provider", "name", "model"),
    [
        ("", "gpt-test", "gpt-test"),
        ("", "openai/gpt-test", "gpt-test"),
        ("openai", "openai/gpt-test", "gpt-test"),
        ("openai_compatible", "meta/llama", "meta/llama"),
        ("", "meta/llama", "meta/llama"),
    ],
)
def test_the_name_of_a_model_may_begin_with_its_provider(provider: str, name: str, model: str) -> None:
    assert body(provider=provider, name=name)["model"] == model


@pytest.mark.parametrize("name", ["claude-test", "anthropic/claude-test"])
def test_without_a_provider_claude_is_anthropics(name: str) -> None:
    asked = sent(claude, provider="", name=name)
    assert (asked.path, asked.json["model"]) == ("/v1/messages", "claude-test")


# ------------------------------------------------------------ what is missing


def test_the_error_for_an_unknown_provider_suggests_known_ones() -> None:
    with pytest.raises(ProviderError, match="did you mean 'openai'") as raised:
        ask(call(provider="openia"))
    assert "OPENIA_BASE_URL" in str(raised.value)
    with pytest.raises(ProviderError, match="known: openai, anthropic, openai_compatible, vllm, ollama"):
        ask(call(provider="zzz"))


def test_the_error_for_a_server_without_an_address_names_the_variable() -> None:
    with pytest.raises(ProviderError, match="VLLM_BASE_URL"):
        ask(call(provider="vllm"))


@pytest.mark.parametrize(
    ("provider", "variable"), [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")]
)
def test_the_error_for_a_missing_key_names_its_variable(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "a key of somebody else")
    with pytest.raises(KeyMissing, match=f"set {variable}"):
        ask_with(Access({}), call(provider=provider))


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("openai", "openai"),
        ("langchain_openai", "openai"),
        ("anthropic", "anthropic"),
        ("langchain_anthropic", "anthropic"),
    ],
)
def test_the_error_for_a_missing_package_names_the_extra(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissing) as raised:
        ask(call(provider=extra))
    assert f'pip install "agent-scenarios[{extra}]"' in str(raised.value)
    assert repr(package) in str(raised.value)
