"""Handlers of the cases: what they answer is written in the params of their node."""

from __future__ import annotations

from langchain_core.messages import AIMessage


def leave(state, params):
    return params.get("leave", {})


def look(state):
    return {"saw": sorted(state)}


def echo_params(state, params):
    return {"params": params}


def copy_key(state, params):
    return {params["to"]: state[params["key"]]}


def fail(state, params):
    raise ValueError(params.get("why", "no"))


def meddle(state, params):
    state["mine"] = "lost"
    state["tags"].append("kept")
    return {}


def shout(state):
    return {"shouts": [state["word"].upper()]}


def choose(state):
    return {"__next__": state["word"]}


def not_odd(state):
    if state["number"] % 2:
        raise ValueError(f"{state['number']} is odd")
    return {"halves": [state["number"] // 2]}


def count_up(state):
    return {"count": state.get("count", 0) + 1}


def speak(state, params):
    said = params["say"]
    return {"talk": (said[0], said[1]) if isinstance(said, list) else said}


def talk_back(state):
    talk = state["talk"]
    talk.append(AIMessage(f"{len(talk)} said"))
    return {}
