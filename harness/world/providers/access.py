"""Resolves the address and the API key of a model's provider, or the address of a model server of one's own.

A provider that is not in `PROVIDERS` may be used if its address is given; it must speak OpenAI's protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urljoin, urlsplit

from harness.errors import KeyMissing, ProviderError
from harness.graph.effects import LLMCall, ModelServer
from harness.source.display import did_you_mean

Protocol = Literal["openai", "anthropic", "ollama", "gemini", "bedrock", "mistral"]

DUMMY_KEY: Final = "replayed"
NO_KEY: Final = "EMPTY"


@dataclass(frozen=True)
class Access:
    """The settings for access to providers.

    environment  variables with keys and addresses: OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY, …
    replayed     True if nothing is sent, so that no key is needed
    """

    environment: Mapping[str, str]
    replayed: bool = False


@dataclass(frozen=True)
class Address:
    """A model, with the address, protocol and key of its provider.

    compatible  True for a server with an API compatible with OpenAI's
    endpoint    the whole address of the calls, if they do not go to a path below `base_url`
    headers     additional headers
    timeout_s   the time limit of a call; None for that of the client
    variables   the environment variables that have the address
    """

    provider: str
    protocol: Protocol
    model: str
    base_url: str
    key: str = field(repr=False)
    compatible: bool = False
    endpoint: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout_s: float | None = None
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Provider:
    """A provider. Its key is in `{prefix}_API_KEY`, its address in `{prefix}_BASE_URL` or `other_variable`.

    A compatible server needs no key; its URL may lack scheme and path, as in manifests.
    """

    prefix: str
    protocol: Protocol = "openai"
    base_url: str | None = None
    other_variable: str = ""
    compatible: bool = False


PROVIDERS: Final[Mapping[str, Provider]] = {
    "openai": Provider("OPENAI", "openai", "https://api.openai.com/v1", "OPENAI_API_BASE"),
    "anthropic": Provider("ANTHROPIC", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_URL"),
    "openai_compatible": Provider("OPENAI_COMPATIBLE", compatible=True),
    "vllm": Provider("VLLM", compatible=True),
    "ollama": Provider(
        "OLLAMA", base_url="localhost:11434", other_variable="OLLAMA_API_BASE", compatible=True
    ),
}

_OTHERS: Final = (
    Provider("GOOGLE_GEMINI", "gemini", "https://generativelanguage.googleapis.com"),
    Provider(
        "BEDROCK", "bedrock", "https://bedrock-runtime*.amazonaws.com", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"
    ),
    Provider("MISTRAL", "mistral", "https://api.mistral.ai/v1"),
    Provider("GROQ", "mistral", "https://api.groq.com/openai/v1"),
    Provider("OLLAMA", "ollama", "http://*:11434", "OLLAMA_HOST"),
    Provider("GOOGLE_VERTEX", "gemini", "https://*aiplatform.googleapis.com"),
)
"""Providers that only the code of users asks. `*` is any text."""


def resolve_address(call: LLMCall, access: Access) -> Address:
    """Return the address for a call. A base URL in the manifest takes precedence over one in the environment.

    Raises:
        ProviderError: the address of the provider is not known.
        KeyMissing: there is no key.
    """
    name, model = provider_and_model(call)
    if call.server is not None:
        return _address_of_server(call.server, name, model, call, access)
    provider = PROVIDERS.get(name) or _unknown(name)
    base_url, variable = call.base_url, ""
    if not base_url:
        variable = next((v for v in _address_variables(provider) if access.environment.get(v)), "")
        base_url = access.environment.get(variable) or provider.base_url
    if not base_url:
        raise ProviderError(_no_address_text(name, model, provider))
    return Address(
        provider=name,
        protocol=provider.protocol,
        model=model,
        base_url=openai_url(base_url) if provider.compatible else base_url,
        key=_key(name, model, provider, call, access),
        compatible=provider.compatible,
        variables=(variable,) if variable else (),
    )


_ENDPOINT: Final = "LOCAL_MODEL_ENDPOINT"
_SERVER_KIND: Final = "LOCAL_MODEL_SERVER_TYPE"
_TIMEOUT: Final = "LOCAL_MODEL_TIMEOUT"
_KINDS: Final[Mapping[str, Protocol]] = {"openai": "openai", "ollama": "ollama"}
"""The kinds of servers that can be asked, each with its protocol."""


def _address_of_server(server: ModelServer, name: str, model: str, call: LLMCall, access: Access) -> Address:
    """Return the address of a model server. Its settings take precedence over variables."""
    env = access.environment
    given = {_ENDPOINT: server.url, _SERVER_KIND: server.kind, _TIMEOUT: server.timeout_s}
    variables = tuple(variable for variable in given if not given[variable] and env.get(variable))
    url = server.url or env.get(_ENDPOINT) or server.default_url
    if not url:
        raise ProviderError(
            f"nothing says where model {model!r} is: set {_ENDPOINT} to the address of its server"
        )
    endpoint = url if url.startswith(("http://", "https://")) else f"http://{url}"
    kind = _kind_at(endpoint)
    if kind != "openai":  # servers of other types have such an address, too
        kind = server.kind or env.get(_SERVER_KIND) or kind or "openai"
    if kind not in _KINDS:
        text = f"model {model!r} is on a server of the type {kind!r}, which cannot be asked here"
        raise ProviderError(f"{text}; there are {', '.join(_KINDS)}")
    try:
        timeout_s = server.timeout_s or float(env.get(_TIMEOUT) or 0) or None
    except ValueError:
        raise ProviderError(f"{_TIMEOUT} is not a number of seconds: {env[_TIMEOUT]!r}") from None
    return Address(
        provider=name,
        protocol=_KINDS[kind],
        model=model,
        base_url=urljoin(endpoint, "/"),
        key=_key(name, model, _unknown(name), call, access),
        compatible=True,
        endpoint=endpoint,
        headers=tuple(server.headers.items()),
        timeout_s=timeout_s,
        variables=variables,
    )


def _kind_at(url: str) -> str | None:
    """Return the kind of server that an address is for; None if it does not tell."""
    split = urlsplit(url)
    endings = {"/chat/completions": "openai", "/api/v1/generate": "textgen", "/api/generate": "ollama"}
    known = (kind for ending, kind in endings.items() if split.path.rstrip("/").endswith(ending))
    return next(known, "huggingface" if (split.hostname or "").endswith("huggingface.co") else None)


def base_urls(environment: Mapping[str, str]) -> Iterator[tuple[Protocol, str]]:
    """Yield the protocol and the base URL of each provider, those in the environment first."""
    for provider in (*PROVIDERS.values(), *_OTHERS):
        for base_url in (*map(environment.get, _address_variables(provider)), provider.base_url):
            if base_url:
                yield provider.protocol, openai_url(base_url) if provider.compatible else base_url


def provider_and_model(call: LLMCall) -> tuple[str, str]:
    """Return provider and model. Without a provider, the model's name decides: `openai/gpt-4o`, `claude-…`."""
    provider, model = call.provider, call.name
    prefix, slash, rest = model.partition("/")
    if slash and rest and (prefix == provider or (not provider and prefix in PROVIDERS)):
        return prefix, rest
    return provider or ("anthropic" if model.startswith("claude") else "openai"), model


def openai_url(written: str) -> str:
    """Complete the base URL of an OpenAI-compatible server: `localhost:8000` is `http://localhost:8000/v1`."""
    url = written.strip()
    if not url.startswith(("http://", "https://")):
        url = f"http://{url}"
    return url.rstrip("/") if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/v1"


def _unknown(name: str) -> Provider:
    prefix = re.sub(r"\W", "_", name).upper()
    return Provider(prefix, other_variable=f"{prefix}_API_BASE", compatible=True)


def _address_variables(provider: Provider) -> list[str]:
    return [f"{provider.prefix}_BASE_URL", *filter(None, [provider.other_variable])]


def _no_address_text(name: str, model: str, provider: Provider) -> str:
    variable = f"{provider.prefix}_BASE_URL"
    if name in PROVIDERS:
        return f"nothing says where provider {name!r} of model {model!r} is: set {variable}"
    return (
        f"provider {name!r} of model {model!r} is not known ({did_you_mean(name, PROVIDERS)})\n"
        f"  if it speaks OpenAI's protocol, set {variable} to where it is"
    )


def _key(name: str, model: str, provider: Provider, call: LLMCall, access: Access) -> str:
    if access.replayed:
        return DUMMY_KEY
    variable = f"{provider.prefix}_API_KEY"
    key = call.api_key or access.environment.get(variable)
    if key:
        return key
    if provider.compatible:
        return NO_KEY
    raise KeyMissing(f"there is no key for provider {name!r} of model {model!r}: set {variable}")


_NAMES: Final = """
temperature top_p top_k min_p typical_p n best_of seed stop stop_sequences logit_bias logprobs top_logprobs
max_tokens max_completion_tokens max_output_tokens max_new_tokens min_tokens num_predict num_ctx num_keep
presence_penalty frequency_penalty repetition_penalty repeat_penalty repeat_last_n length_penalty
mirostat mirostat_eta mirostat_tau tfs_z use_beam_search ignore_eos skip_special_tokens echo suffix
response_format response_schema response_mime_type guided_json guided_regex guided_choice guided_grammar
structured_outputs grammar format json_schema text verbosity modalities response_modalities audio
reasoning reasoning_effort reasoning_budget thinking thinking_budget thinking_config thinking_level think effort
include_thoughts include_reasoning output_config chat_template chat_template_kwargs
tools tool_choice parallel_tool_calls functions function_call web_search_options mcp_servers container
candidate_count generation_config safety_settings safe_prompt cached_content labels
stream streaming stream_options stream_usage include truncation previous_response_id conversation background
user user_id metadata store service_tier inference_geo safety_identifier prediction prompt prompt_cache_key
prompt_cache_retention context_management cache_control betas keep_alive transforms route provider models plugins
priority random_seed prompt_truncation serving_mode
extra_headers extra_query extra_body default_headers default_query model_kwargs timeout request_timeout
max_retries num_retries base_url api_base api_key api_version openai_api_base openai_api_key anthropic_api_url
anthropic_api_key
"""

KNOWN_PARAMETERS: Final = frozenset(_NAMES.split())
"""Parameters of the APIs of OpenAI, Anthropic, Google, Mistral, Cohere, OCI, OpenRouter, vLLM and Ollama."""
