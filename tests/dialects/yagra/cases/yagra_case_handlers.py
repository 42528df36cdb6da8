"""Handlers of the cases: what they answer is written in the params of their node."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage


def leave(state: Any, params: Any) -> Any:
    return params.get("leave", {})


def look(state: Any) -> Any:
    return {"saw": sorted(state)}


def echo_params(state: Any, params: Any) -> Any:
    return {"params": params}


def copy_key(state: Any, params: Any) -> Any:
    return {params["to"]: state[params["key"]]}


def fail(state: Any, params: Any) -> None:
    raise ValueError(params.get("why", "no"))


def meddle(state: Any, params: Any) -> Any:
    state["mine"] = "lost"
    state["tags"].append("kept")
    return {}


def shout(state: Any) -> Any:
    return {"shouts": [state["word"].upper()]}


def choose(state: Any) -> Any:
    return {"__next__": state["word"]}


def not_odd(state: Any) -> Any:
    if state["number"] % 2:
        raise ValueError(f"{state['number']} is odd")
    return {"halves": [state["number"] // 2]}


def count_up(state: Any) -> Any:
    return {"count": state.get("count", 0) + 1}


def speak(state: Any, params: Any) -> Any:
    said = params["say"]
    return {"talk": (said[0], said[1]) if isinstance(said, list) else said}


def talk_back(state: Any) -> Any:
    talk = state["talk"]
    talk.append(AIMessage(f"{len(talk)} said"))
    return {}


def grade(state: Any, params: Any) -> Any:
    return {"keys": [repr(key) for key in params["levels"]], "shared": params["shared"][1]}
