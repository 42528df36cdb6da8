"""The authentication of remote transports (26.1.2), which has no effect. schema: AuthConfig."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel

from harness.dialects.agentspec.component import Component, ComponentField


class OAuthEndpoints(BaseModel, extra="forbid", strict=True, title="endpoints"):
    """The endpoints of an authorization server."""

    authorization_endpoint: str
    token_endpoint: str
    refresh_endpoint: str | None = None
    revocation_endpoint: str | None = None
    userinfo_endpoint: str | None = None


class PKCEPolicy(BaseModel, extra="forbid", strict=True, title="a PKCE policy"):
    """The exchange of codes."""

    required: bool = True
    method: Literal["plain", "S256"] = "S256"


class OAuthClientConfig(Component, title="an OAuthClientConfig"):
    """The identity of a client."""

    type: Literal["pre_registered", "client_id_metadata_document", "dynamic_registration"]
    token_endpoint_auth_method: str | None = None
    registration_endpoint: str | None = None


class AuthConfig(Component, title="an authentication"):
    """Base class of authentications."""


class OAuthConfig(AuthConfig, title="an OAuthConfig"):
    """Authentication by OAuth."""

    issuer: str | None = None
    endpoints: OAuthEndpoints | None = None
    client: Annotated[OAuthClientConfig, ComponentField(OAuthClientConfig)]
    redirect_uri: str
    scopes: str | list[str] | None = None
    scope_policy: Literal["use_challenge_or_supported", "fixed"] | None = None
    pkce: PKCEPolicy | None = None
    resource: str | None = None
