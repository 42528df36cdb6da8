"""Handlers that speak HTTP themselves, with clients of their own."""

from typing import Any

import httpx
import requests

MODEL = "https://api.openai.com/v1/chat/completions"


def track(state: dict[str, Any]) -> dict[str, Any]:
    """Where the parcel is; asked again once when the courier is busy."""
    url = f"https://courier.test/parcels/{state['parcel']}"
    answer = requests.get(url, timeout=5)
    if answer.status_code == 429:
        answer = requests.get(url, timeout=5)
    if answer.status_code == 404:
        return {"status": "unknown"}
    return {"status": answer.json()["status"]}


async def tell(state: dict[str, Any]) -> dict[str, Any]:
    """What a model makes of that."""
    messages = [
        {"role": "user", "content": f"Tell the customer: parcel {state['parcel']} is {state['status']}."}
    ]
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.post(MODEL, json={"model": "gpt-4o-mini", "messages": messages})
    return {"reply": answer.json()["choices"][0]["message"]["content"]}
