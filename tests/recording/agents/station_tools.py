"""Tools that ask a weather station, each with another client."""

import json
import urllib.request

import httpx
import requests
from langchain_core.tools import tool

URL = "http://served.test/station/"


@tool
def by_httpx(city: str) -> str:
    """The wind in a city."""
    return str(httpx.get(URL + city, timeout=5).json()["wind"])


@tool
async def by_async_httpx(city: str) -> str:
    """The wind in a city."""
    async with httpx.AsyncClient(timeout=5) as client:
        return str((await client.get(URL + city)).json()["wind"])


@tool
def by_requests(city: str) -> str:
    """The wind in a city."""
    return str(requests.get(URL + city, timeout=5).json()["wind"])


@tool
def by_urllib(city: str) -> str:
    """The wind in a city."""
    with urllib.request.urlopen(URL + city, timeout=5) as response:
        return str(json.load(response)["wind"])
