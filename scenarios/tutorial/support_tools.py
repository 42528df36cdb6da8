"""Tools the agents of the tutorial may call, and handlers of its Yagra workflow."""

from typing import Any

from langchain_core.tools import tool

CHARGES: dict[str, list[dict[str, Any]]] = {
    "ada@example.com": [{"day": "2026-03-01", "amount": 20.0}, {"day": "2026-03-01", "amount": 20.0}],
    "bob@example.com": [{"day": "2026-03-02", "amount": 5.0}],
}
PARCELS = {"B2": ["P1", "P2", "P3"]}
PIECES = {"C3": ["bowl", "jug", "vase"]}


@tool
def find_charges(email: str) -> list[dict[str, Any]]:
    """The charges of a customer, oldest first."""
    return CHARGES.get(email, [])


def parcels_of(order: str) -> list[str]:
    """The parcels an order was sent in."""
    return PARCELS.get(order, [])


def unpack(state: dict[str, Any]) -> dict[str, Any]:
    """The pieces of an order that came back."""
    return {"pieces": PIECES.get(state["order"], [])}


def add_up(state: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """The refund: what the pieces are worth, less the cost of handling."""
    # A node writes its whole state back. To leave `worth` out would append the list to itself.
    return {"refund": sum(state["worth"]) - params["handling"], "worth": []}


def pay(state: dict[str, Any]) -> dict[str, Any]:
    """Pay the refund, and say so."""
    return {"reply": f"We have sent you {state['refund']:.2f}."}
