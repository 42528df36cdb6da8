"""The functions of the workshop, each named after its agent."""

from leafmesh import chain


def in_days(result, context):
    """The firings as days: each takes two, and a week of drying goes before them."""
    return {"days": 7 + 2 * result["firings"]}


@chain(in_days)
async def kiln(llm_response, input_data, context):
    """How often it must be fired: twenty pieces go in at once."""
    return {"firings": -(-int(input_data["count"]) // 20)}


async def discount(llm_response, input_data, context):
    """What a large order is given."""
    return {"percent": 10}


async def sender(llm_response, input_data, context):
    """Who signed what was sent."""
    return {"sent": True, "signed_by": input_data["source_agent"]}
