"""A manifest of sherma that asks models."""


def sherma(*nodes: str, top: str = "", provider: str = "openai", model: str = "small") -> str:
    """A manifest whose agent runs these nodes; each is the args of a call_llm."""
    named = [
        f"""
        - name: n{at}
          type: call_llm
          args: {{prompt: [{{role: messages, content: state.messages}}], {node},
                  state_updates: {{messages: "[llm_response]"}}}}"""
        for at, node in enumerate(nodes)
    ]
    edges = ", ".join(f"{{source: n{at}, target: n{at + 1}}}" for at in range(len(nodes) - 1))
    return f"""
manifest_version: 1
llms: [{{id: m, version: 1.0.0, provider: {provider}, model_name: {model}}}]
default_llm: {{id: m}}
{top}
agents:
  it:
    state: {{fields: [{{name: messages, type: list, default: []}}]}}
    graph:
      entry_point: n0
      nodes: {"".join(named)}
      edges: [{edges}]
"""
