"""Tools the agents of the tutorial may call."""

CHARGES = {
    "ada@example.com": [{"day": "2026-03-01", "amount": 20.0}, {"day": "2026-03-01", "amount": 20.0}],
    "bob@example.com": [{"day": "2026-03-02", "amount": 5.0}],
}
PARCELS = {"B2": ["P1", "P2", "P3"]}


def find_charges(email: str) -> list:
    """The charges of a customer, oldest first."""
    return CHARGES.get(email, [])


def parcels_of(order: str) -> list:
    """The parcels an order was sent in."""
    return PARCELS.get(order, [])
