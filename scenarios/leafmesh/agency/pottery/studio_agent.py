"""Agent functions of the pottery studio mesh: one per decorator."""

from leafmesh import chain, chain_with_results, compose, conditional_chain, pre_compose


def opening_hours(input_data, context):
    return {"open_until": "18:30", "caller": context.get("from_agent", "")}


def tidy(input_data, context):
    return " ".join(input_data.get("message", "").split())


def extras(input_data, context):
    return {"length": len(input_data.get("message", ""))}


@pre_compose(context_processor=opening_hours, input_processor=tidy, others_processor=extras)
async def receptionist(llm_response, input_data, context):
    prepared = context["prepared_data"]
    return {
        "intent": llm_response["intent"],
        "clean": prepared["clean_user_input"],
        "hours": prepared["business_context"]["open_until"],
        "length": prepared["others"]["length"],
    }


def add_vat(result, context):
    result["gross"] = result["net"] + 10
    return result


async def mark_checked(result, context):
    return {**result, "checked": result["gross"] > result["net"]}


@chain(add_vat, mark_checked)
async def price_list(llm_response, input_data, context):
    return {"net": 50, "first_argument": llm_response}


def dry(result, context):
    return {**result, "stage": "dry"}


def bisque(result, context):
    return {**result, "stage": "bisque", "after": result["stage"]}


@chain_with_results(dry, bisque)
def firing_log(llm_response, input_data, context):
    return {"stage": "wet", "pot": input_data.get("pot", "")}


def repair(result, context):
    result["repaired"] = True
    return result


@conditional_chain(lambda result, context: result.get("cracked"), repair)
async def inspection(llm_response, input_data, context):
    return {"cracked": input_data.get("cracks", 0) > 0}


def polish(result, context):
    result["polished"] = True
    return result


@chain(polish)
@compose(
    invoice=lambda result, context: {"amount": result["total"]},
    parcel=lambda result, context: {"address": result["street"], "was_polished": "polished" in result},
)
async def checkout(llm_response, input_data, context):
    return {"total": 75, "street": "Kiln Lane 3"}


async def invoice(llm_response, input_data, context):
    own = {k: v for k, v in input_data.items() if k not in ("upstream_yields", "calling_agent_response")}
    return {
        "got": own,
        "yields_seen": input_data["upstream_yields"]["checkout"],
        "full": sorted(input_data["calling_agent_response"]),
    }


def parcel(llm_response, input_data, context):
    return {
        "to": input_data["address"],
        "was_polished": input_data["was_polished"],
        "total": input_data.get("total"),
    }


def broken_wheel(llm_response, input_data, context):
    raise KeyError("belt")


def weigh(llm_response, input_data, context):
    return 3.5


async def courier(connector_response, input_data, context):
    return {"tracking": connector_response["id"].lower(), "for": input_data["pot"]}
