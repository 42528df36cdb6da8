"""Handlers of the public yagra scenarios. The folder of the scenario files must be importable."""


# ---- ferry desk: routing
def sort_request(state, params):
    text = state["input"].lower()
    for word, label in params["words"].items():
        if word in text:
            return {"topic": label, "__next__": label}
    return {"topic": "unknown", "__next__": "unclear"}


def say_nothing(state):
    return {}


def wrong_label(state):
    return {"__next__": "sublet"}


def numeric_label(state):
    return {"__next__": 7}


def sell_ticket(state):
    return {"answer": "One ticket for: " + state["input"]}


def report_lost(state):
    return {"answer": "Lost property will look for it.", "topic_seen": state.get("topic")}


def ask_again(state):
    return {"answer": "Could you say that again?"}


# ---- tide check: a loop
def measure(state):
    return {"level": state["level"] + state.get("rise", 1), "readings": state.get("readings", 0) + 1}


def judge(state, params):
    return {"__next__": "go" if state["level"] >= params["safe_level"] else "wait"}


def sail(state):
    return {"departed": True}


# ---- bakery: params and prompts
def weigh(state):
    return {"grams": 250 * state["loaves"]}


def price(state, params):
    return {"price": state["grams"] * params["cents_per_gram"] // 100}


def show_params(state, params):
    return {"seen": dict(params)}


def show_params_again(state, params):
    return {"seen_again": dict(params)}


def broken_inside(state, params):
    return {"total": 1 + "one"}


def forgiving(state, params=None):
    if params is not None:
        raise TypeError("params are not understood")
    return {"called_with": "state only"}


def refuses(state, params=None):
    if params is None:
        return {"called_with": "state only"}
    raise ValueError(f"tray {params['tray']} is empty")


def returns_a_list(state, params):
    return ["not", "a", "mapping"]


def returns_nothing(state, params):
    return None


def note_output(state):
    return {"noted": "out:" + str(state.get("output"))}


# ---- observatory: results of language model nodes
def _as_mapping(value):
    return value.model_dump() if hasattr(value, "model_dump") else value


def file_sighting(state):
    sighting = _as_mapping(state["sighting"])
    return {"filed": f"{sighting['object']} at {sighting['magnitude']}", "tags": sighting.get("tags")}


def join_chunks(state):
    return {"text": "".join(state["speech"])}


def point_at_sky(state):
    return {"pointed": True}


def close_dome(state):
    return {"closed": True}


# ---- couriers: resilience
def pack(state):
    return {"packed": True}


def deliver(state):
    return {"delivered_by": state.get("carrier"), "note": state.get("note")}


def leave_at_locker(state):
    return {"carrier": "locker", "note": "because: " + str(state.get("__error__"))}


def always_fails(state):
    raise RuntimeError("the van broke down")


def fails_differently(state):
    raise ValueError("the bicycle has a flat tyre")


def choose_carrier(state):
    if state["weight"] > 30:
        raise ValueError(f"{state['weight']} kg is too heavy")
    label = "bike" if state["weight"] < 5 else "van"
    return {"carrier": label, "__next__": label}


# ---- bee hives: fan-out
def list_hives(state):
    return {"hives": state.get("planned", [])} if "planned" in state else {}


def inspect_hive(state):
    return {"reports": [f"{state['hive']}: fine"]}


def inspect_keys(state):
    return {"reports": [sorted(state)]}


def inspect_box(state, params):
    box = state["hive"]
    return {"reports": [{"name": box["name"], "full": box["frames"] >= params["full_at"]}]}


def count_reports(state):
    return {"count": len(state["reports"])}


def repeat_nothing(state):
    return {"count": len(state["reports"]), "reports": []}


def smell(state):
    return {"reports": ["smells of clover"]}


def listen(state):
    return {"reports": ["hums in b flat"]}


# ---- field notes: state
def take_notes(state):
    return {
        "place": "meadow",
        "birds": 3,
        "share": 0.5,
        "wet": True,
        "kinds": ["wren"],
        "extra": {"wind": "west"},
        "scratch": "not declared",
    }


def read_back(state):
    return {"keys": sorted(k for k in state if k != "keys")}


def wrong_types(state):
    return {"birds": "three", "kinds": "wren"}


def second_kind(state):
    return {"kinds": ["robin"]}


def reply_politely(state):
    return {"messages": [{"role": "assistant", "content": "You said: " + state["messages"][-1].content}]}


def count_messages(state):
    return {"count": len(state["messages"])}


def correct_last(state):
    last = state["messages"][-1]
    return {"messages": [{"id": last.id, "role": "assistant", "content": last.content + "!"}]}


# ---- museum loans: interrupts
def draft_letter(state):
    return {"letter": f"We would like to borrow {state['piece']}."}


def sign(state):
    return {"signed": f"{state.get('letter', '(no letter)')} Signed: {state.get('director', 'the deputy')}"}


def send(state):
    return {"sent": True}


def revise(state):
    return {"version": state.get("version", 0) + 1}


def review(state):
    return {"__next__": "done" if state.get("approved") else "again"}


def publish(state):
    return {"published": state["version"]}


# ---- seed bank: subgraphs
def pick_seed(state):
    return {"species": state["input"].strip().lower(), "log": ["picked"]}


def soak(state):
    return {"soaked": state["species"] + " soaked", "log": ["soaked"]}


def sprout(state):
    return {"sprouted": state["soaked"] + ", sprouted", "hidden": "only in the subgraph", "log": ["sprouted"]}


def label_jar(state):
    return {"jar": state["sprouted"], "saw": sorted(state)}


def brittle_soak(state):
    raise RuntimeError("the tap is dry")
