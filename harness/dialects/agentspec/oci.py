"""The client configurations of OCI, which models and remote agents have. spec: "OCI Client Configuration"."""

from __future__ import annotations

from typing import Literal

from harness.dialects.agentspec.component import Component


class OciClientConfig(Component, title="an OCI client configuration"):
    """Base class of OCI client configurations. spec: "OCI Client Configuration"."""

    service_endpoint: str


class OciClientConfigWithSecurityToken(OciClientConfig, title="an OciClientConfigWithSecurityToken"):
    """Authentication with a security token. spec: "OciClientConfigWithSecurityToken"."""

    auth_profile: str
    auth_file_location: str
    auth_type: Literal["SECURITY_TOKEN"] = "SECURITY_TOKEN"


class OciClientConfigWithApiKey(OciClientConfig, title="an OciClientConfigWithApiKey"):
    """Authentication with an API key. spec: "OciClientConfigWithApiKey"."""

    auth_profile: str
    auth_file_location: str
    auth_type: Literal["API_KEY"] = "API_KEY"


class OciClientConfigWithInstancePrincipal(OciClientConfig, title="an OciClientConfigWithInstancePrincipal"):
    """Authentication as an instance principal. spec: "OciClientConfigWithInstancePrincipal"."""

    auth_type: Literal["INSTANCE_PRINCIPAL"] = "INSTANCE_PRINCIPAL"


class OciClientConfigWithResourcePrincipal(OciClientConfig, title="an OciClientConfigWithResourcePrincipal"):
    """Authentication as a resource principal. spec: "OciClientConfigWithResourcePrincipal"."""

    auth_type: Literal["RESOURCE_PRINCIPAL"] = "RESOURCE_PRINCIPAL"
