"""Resolves the address and the API key of a model's provider.

A provider that is not in `PROVIDERS` may be used if its address is given; it must speak OpenAI's protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

from harness.errors import KeyMissing, ProviderError
from harness.graph.effects import LLMCall
from harness.source.suggest import did_you_mean

Protocol = Literal["openai", "anthropic"]

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
    variable    the environment variable that has the address; "" if none has
    """

    provider: str
    protocol: Protocol
    model: str
    base_url: str
    key: str = field(repr=False)
    compatible: bool = False
    variable: str = ""


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


def resolve_address(call: LLMCall, access: Access) -> Address:
    """Return the address for a call. A base URL in the manifest takes precedence over one in the environment.

    Raises:
        ProviderError: the address of the provider is not known.
        KeyMissing: there is no key.
    """
    name, model = provider_and_model(call)
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
        variable=variable,
    )


def base_urls(environment: Mapping[str, str]) -> Iterator[tuple[Protocol, str]]:
    """Yield the protocol and the base URL of each provider, those in the environment first."""
    for provider in PROVIDERS.values():
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
