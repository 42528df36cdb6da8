"""Models are called at the addresses that a manifest gives."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.dialects.load import load_graph
from harness.dialects.request import LoadRequest
from harness.engine.conversation import Conversation
from harness.engine.standstill import Simulation
from harness.graph.effects import Effect, LLMCall
from harness.graph.world import Answer
from harness.world.providers import Access, Providers
from harness.world.scripted import ScriptedWorld
from harness.world.spec import WorldSpec
from tests.world.loopback import CannedReply, loopback

COMPLETION = CannedReply(
    json={
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
)


class RealModels(ScriptedWorld):
    """Return a world without stubs, whose models are called for real without a key."""

    providers: Providers

    async def answer(self, effect: Effect, state: Any) -> Answer:
        assert isinstance(effect, LLMCall)
        return Answer(value=await self.providers.ask(effect))


def run(path: Path, given: Any) -> tuple[Mapping[str, Any], str]:
    """Return the final state of one run, and its trace as text."""

    async def main() -> tuple[Mapping[str, Any], str]:
        world = RealModels(WorldSpec())
        world.providers = Providers(Access({}))
        simulation = Simulation(world)
        conversation = Conversation(load_graph(LoadRequest((path,))), simulation)
        await conversation.prepare()
        ending = await conversation.send(given)
        await world.providers.close()
        assert ending.status == "completed", ending.error
        return ending.output, str(simulation.trace.events)

    return asyncio.run(main())


def flow(config: Mapping[str, Any]) -> str:
    """Return an Agent Spec flow that calls its model once."""

    def ref(name: str) -> Mapping[str, str]:
        return {"$component_ref": name}

    nodes: dict[str, Mapping[str, Any]] = {
        "start": {"component_type": "StartNode"},
        "ask": {"component_type": "LlmNode", "llm_config": ref("model"), "prompt_template": "hello"},
        "end": {"component_type": "EndNode", "outputs": [{"title": "generated_text", "type": "string"}]},
    }
    edge = {"component_type": "ControlFlowEdge"}
    return json.dumps(
        {
            "agentspec_version": "25.4.1",
            "component_type": "Flow",
            "name": "flow",
            "start_node": ref("start"),
            "nodes": [ref(name) for name in nodes],
            "control_flow_connections": [
                {**edge, "name": "one", "from_node": ref("start"), "to_node": ref("ask")},
                {**edge, "name": "two", "from_node": ref("ask"), "to_node": ref("end")},
            ],
            "outputs": [{"title": "generated_text", "type": "string"}],
            "$referenced_components": {
                **{name: {"name": name, **node} for name, node in nodes.items()},
                "model": {"name": "model", "model_id": "tiny", **config},
            },
        }
    )


@pytest.mark.parametrize("kind", ["OpenAiCompatibleConfig", "VllmConfig", "OllamaConfig"])
def test_the_url_of_an_agentspec_configuration_is_the_address_of_its_model(kind: str, tmp_path: Path) -> None:
    with loopback(COMPLETION) as server:
        url = server.url.removeprefix("http://")
        path = tmp_path / "flow.json"
        path.write_text(flow({"component_type": kind, "url": url}), encoding="utf-8")
        run(path, {})
        (asked,) = server.asked
    assert (asked.path, asked.json["model"]) == ("/v1/chat/completions", "tiny")


@pytest.mark.parametrize("name", ["base_url", "api_base"])
def test_the_kwargs_of_a_yagra_model_give_its_address_and_its_key_is_in_no_trace(
    name: str, tmp_path: Path
) -> None:
    with loopback(COMPLETION) as server:
        kwargs = {name: f"{server.url}/v1", "api_key": "sk-secret", "temperature": 0.5}
        params = {
            "prompt_ref": "prompts.yaml#ask",
            "model": {"provider": "openai", "name": "tiny", "kwargs": kwargs},
        }
        workflow = {
            "version": "1.0",
            "start_at": "ask",
            "end_at": ["ask"],
            "nodes": [{"id": "ask", "handler": "llm", "params": params}],
            "edges": [],
        }
        (tmp_path / "prompts.yaml").write_text("ask: {user: hello}", encoding="utf-8")
        path = tmp_path / "workflow.yaml"
        path.write_text(json.dumps(workflow), encoding="utf-8")
        output, trace = run(path, {})
        (asked,) = server.asked
    assert output["output"] == "hi"
    assert asked.headers["authorization"] == "Bearer sk-secret"
    assert asked.json.keys() == {"model", "messages", "temperature", "stream"}
    assert "sk-secret" not in trace
    assert server.url in trace
