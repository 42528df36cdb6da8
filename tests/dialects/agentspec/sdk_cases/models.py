"""Models, at every provider."""

from __future__ import annotations

from typing import Any

from pyagentspec.flows.nodes import (
    EndNode,
    LlmNode,
    StartNode,
    ToolNode,
)
from pyagentspec.llms import (
    OciGenAiConfig,
    VllmConfig,
)
from pyagentspec.llms.ociclientconfig import (
    OciClientConfig,
    OciClientConfigWithApiKey,
    OciClientConfigWithInstancePrincipal,
    OciClientConfigWithResourcePrincipal,
    OciClientConfigWithSecurityToken,
)
from pyagentspec.llms.ocigenaiconfig import ModelProvider, ServingMode
from pyagentspec.tools import ServerTool

from tests.dialects.agentspec.sdk_cases.case import (
    Case,
    case,
    in_a_row,
    integer,
    text,
)


@case
def models_at_oci_by_every_way_to_sign_in() -> Case:
    where: dict[str, Any] = {"service_endpoint": "https://genai.example.test"}
    profile: dict[str, Any] = {"auth_profile": "DEFAULT", "auth_file_location": "~/.oci/config"}

    def step(
        name: str, client: OciClientConfig, provider: ModelProvider | None, mode: ServingMode
    ) -> LlmNode:
        model = OciGenAiConfig(
            name=f"model_{name}",
            model_id=f"model-{name}",
            compartment_id="ocid1.compartment",
            client_config=client,
            provider=provider,
            serving_mode=mode,
        )
        return LlmNode(name=name, llm_config=model, prompt_template="More: {{text}}", outputs=[text("text")])

    shared, own = ServingMode.ON_DEMAND, ServingMode.DEDICATED
    by_key = OciClientConfigWithApiKey(id="by_key", name="by_key", **where, **profile)
    by_token = OciClientConfigWithSecurityToken(id="by_token", name="by_token", **where, **profile)
    nodes = [
        StartNode(name="start", inputs=[text("text")]),
        step("a", by_key, ModelProvider.META, shared),
        step("b", by_token, ModelProvider.GROK, own),
        step(
            "c", OciClientConfigWithInstancePrincipal(name="instance", **where), ModelProvider.COHERE, shared
        ),
        step("d", OciClientConfigWithResourcePrincipal(name="resource", **where), None, shared),
        EndNode(name="end", outputs=[text("text")]),
    ]
    return Case(
        in_a_row("oci_models", nodes),
        """
        - name: one model after another
          input: {text: "0"}
          llm:
            a: [{when: 'request.prompt == "More: 0" && request.model == "model-a"', reply: "1"}]
            b: [{when: 'request.prompt == "More: 1" && request.provider == "oci"', reply: "2"}]
            c: [{when: 'request.prompt == "More: 2"', reply: "3"}]
            d: [{when: 'request.prompt == "More: 3"', reply: "4"}]
          expect: {path: [start, a, b, c, d, end], output: {text: "4"}}
        """,
        supplied={
            "by_key.auth_file_location": "~/.oci/config",
            "by_token.auth_file_location": "~/.oci/config",
        },
    )


@case
def a_model_and_a_tool_in_a_document_of_their_own() -> Case:
    model = VllmConfig(id="dev_model", name="dev_model", model_id="dev", url="http://dev.example.test")
    tool = ServerTool(id="count_chars", name="count_chars", inputs=[text("text")], outputs=[integer("n")])
    nodes = [
        StartNode(name="start", inputs=[text("title")]),
        LlmNode(
            name="shorten", llm_config=model, prompt_template="Shorten: {{title}}", outputs=[text("text")]
        ),
        LlmNode(
            name="lengthen", llm_config=model, prompt_template="Lengthen: {{text}}", outputs=[text("text")]
        ),
        ToolNode(name="count", tool=tool),
        EndNode(name="end", outputs=[integer("n")]),
    ]
    return Case(
        in_a_row("titles", nodes),
        """
        - name: it runs with both documents
          input: {title: On moss}
          tools: {count_chars: [{args: {text: Moss!}, return: 5}]}
          llm:
            shorten: [{when: request.model == "dev", reply: Moss}]
            lengthen: [{when: 'request.prompt == "Lengthen: Moss"', reply: Moss!}]
          expect: {path: [start, shorten, lengthen, count, end], output: {n: 5}}
        """,
        apart=[(model, "the_model"), tool],
    )
