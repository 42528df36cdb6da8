"""Functions that change what they are given, wait, ask others and fail."""

import asyncio

import httpx
from agency.recipes import RECIPES
from leafmesh import chain, chain_with_results, compose, pre_compose


@compose(decorator=lambda result, context: {"message": result["order"].pop("text")})
def counter(first, input_data, context):
    return {"order": {"text": input_data["message"], "parts": ["flour"]}}


def mixer(first, input_data, context):
    input_data["order"]["parts"].append("water")
    input_data["calling_agent_response"]["order"]["parts"].clear()
    return {"mixed": input_data["order"]["parts"]}


@compose(table=lambda result, context: {"glazed": result["glaze"]})
async def decorator(first, input_data, context):
    return {
        "glaze": input_data["message"].upper(),
        "parts": input_data["calling_agent_response"]["order"]["parts"],
    }


def table(first, input_data, context):
    return {
        "got": sorted(input_data),
        "glazed": input_data["glazed"],
        "last": input_data["calling_agent_response"],
    }


def add_tax(result, context):
    if "total" in result:
        result["total"] += 1
    return result


@chain(add_tax)
def till(first, input_data, context):
    again = input_data.get("_rerun_context")
    return {"total": 4} if again else {"sum": 4}


def recipe(input_data, context):
    context["recipe"] = RECIPES[context["agent_name"]]
    return {"flour": context["recipe"]["flour"]}


def as_order(input_data, context):
    return {"order": input_data["message"], "before": len(context["memory_posts"])}


async def sign(result, context):
    result["signed"] = context["session_id"] != ""
    return result


@chain_with_results(sign)
@pre_compose(context_processor=recipe, input_processor=as_order)
async def baker(llm_response, input_data, context):
    posts = context["memory_posts"]
    said = {"said": llm_response, "flour": context["recipe"]["flour"], "posts": len(posts)}
    posts.clear()
    return said


async def courier(first, input_data, context):
    async with httpx.AsyncClient() as client:
        answer = await client.post("https://bikes.example/rides", json={"to": input_data["message"]})
    return answer.json()


async def apprentice(first, input_data, context):
    await asyncio.sleep(30)
    return {"slept": True}


@chain(lambda result, context: result["missing"])
async def oven(first, input_data, context):
    await asyncio.sleep(float(input_data.get("seconds", 0)))
    return {"heat": 220}
