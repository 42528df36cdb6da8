# ruff: noqa: E501 (programs and files as they are written)
"""A project whose tools, servers and scenarios expose planted secrets in all known ways.

`SECRETS` holds the values by the way in which the tools below expose them. No variable has a name that marks it as a
secret.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.manifests import USES_TOOLS
from tests.planted import found_in, unpacked
from tests.recording.planted.servers import VAULT
from tests.secrets import forms

VARIABLES = {
    "state": ("ACME_THING", "Tr0ub4dor&3-x"),
    "stdout": ("LEGACY_CFG", "zx81 kdj wpq r9t"),
    "stderr": ("STRIPE", "rk_live_7yQ2mmZ0pA"),
    "warning": ("MAILER", "SGxq.81kdjEwpQ"),
    "thread": ("CRASHER", "thr-5511-Kdjew"),
    "debug log": ("NOTES", "dbg-7162-Plmok"),
    "client's debug log": ("NOTES_2", "cli-7162-Plmok"),
    "logged mapping": ("NOTES_3", "map-7162-Plmok"),
    "traceback in a log": ("NOTES_4", "trc-7162-Plmok"),
    "child process": ("CHILD", "chd-9918-Zaqws"),
    "error": ("RAISER", "rse-4401-Wsxed"),
    "cause": ("CAUSE", "cse-4402-Wsxed"),
    "note": ("ADDED", "nte-4403-Wsxed"),
    "MCP stderr": ("VAULT", "mcp-2219-Edcrf"),
    "gzip": ("ZIPPED", "gzp-1189-Rfvtg"),
    "deflate": ("DEFLATED", "dfl-1190-Rfvtg"),
    "BOM": ("MARKED", "bom-1191-Rfvtg"),
    "UTF-16": ("WIDE", "wde-1192-Rfvtg"),
    "latin-1": ("LATIN", "lät-1193-Rfvtg"),
    "percent": ("PERCENT", "pct-1194-Rfvtg"),
    "\\u": ("ESCAPED", "esc-1195-Rfvtg"),
    "base64": ("SIXTYFOUR", "b64-1196-Rfvtg"),
    "hex": ("HEXED", "hex-1197-Rfvtg"),
    "colon hex": ("COLONS", "cln-1198-Rfvtg"),
    "URL": ("PLACE", "postgres://app:pgs-3391-Tgbyh@db.example/app"),
    "six characters": ("SIX", "a1b2c3"),
}
LITERALS = {
    "X-Session-Id": "ses-6617-Yhnuj",
    "X-Auth": "aut-6618-Yhnuj",
    "pw": "pwd-6619-Yhnuj",
    "pass with blanks": "correct horse battery",
    "passwordHash": "hsh-6620-Yhnuj",
    "session_id": "sid-6621-Yhnuj",
    "form pass": "frm-6622-Yhnuj",
    "dotenv": "env-6623-Yhnuj",
    "set in a run": "set-6624-Yhnuj",
    "field in a text": "txt-6625-Yhnuj",
    "argument of a scripted tool": "arg-6626-Yhnuj",
    "env of a scenario": "scn-6627-Yhnuj",
}
ENVIRONMENT = {**dict(VARIABLES.values()), **forms.ENVIRONMENT}
SECRETS = {
    **{how: value for how, (_, value) in VARIABLES.items()},
    **LITERALS,
    "URL": "pgs-3391-Tgbyh",
}

TOOLS = """\
import base64, gzip, json, logging, os, subprocess, sys, threading, warnings, zlib

for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".env")):
    name, _, value = line.strip().partition("=")
    os.environ[name] = value

E = os.environ
LOG = logging.getLogger("app")


def leak(state, params):
    print("stdout", E["LEGACY_CFG"], E["SIX"])
    print("stderr", E["STRIPE"], file=sys.stderr)
    half = E["LEGACY_CFG"]
    sys.stdout.write("split " + half[:7]); sys.stdout.write(half[7:] + "\\n")
    warnings.warn("warned of " + E["MAILER"])
    LOG.debug("debug %s", E["NOTES"])
    logging.getLogger("urllib3").debug("header %s", E["NOTES_2"])
    LOG.warning("mapping %s", {"password": E["NOTES_3"]})
    try:
        raise ValueError(E["NOTES_4"])
    except ValueError:
        LOG.exception("failed")
    subprocess.run([sys.executable, "-c", "import os; print(os.environ['CHILD'])"])
    def crash():
        raise RuntimeError(E["CRASHER"])
    thread = threading.Thread(target=crash)
    thread.start()
    thread.join()
    E["LATE"] = LATE
    print("late", E["LATE"], "dotenv", E["DOTENV"], "url", E["PLACE"])
    return {"told": [E["ACME_THING"], E["LATE"], E["DOTENV"], E["SIX"], E["PLACE"], E["LEGACY_CFG"]],
            "text": repr({"password": FIELD, "n": 1})}


FORMS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "forms.json")))


def tell(state, params):
    for text in FORMS:
        print(text)
        print(text, file=sys.stderr)
        LOG.warning("logged %s", text)
        warnings.warn(text)
        print(text[:len(text) // 2], end="", flush=True)
        print(text[len(text) // 2:], flush=True)
    subprocess.run([sys.executable, "-c", "import json; print(*json.load(open('forms.json')), sep='\\n')"])
    return {"told": FORMS, "text": repr(FORMS)}


def shout(state, params):
    raise RuntimeError(str(FORMS)) from ValueError("; ".join(FORMS))


def say(state, params):
    import httpx
    kinds = ("text/plain", "application/json", "application/yaml", "application/xml")
    url = E["API_URL"] + "/say"
    with httpx.Client() as client:
        told = [client.post(url, content=text, headers={"content-type": kinds[n % 4]}).text
                for n, text in enumerate(FORMS)]
        told.append(client.post(url, json={"all": FORMS, "text": str(FORMS)}).text)
    return {"told": told}


def fail(state, params):
    try:
        raise KeyError(E["CAUSE"])
    except KeyError as cause:
        error = RuntimeError("cannot log in with " + E["RAISER"] + ", password=" + FIELD)
        error.add_note("noted " + E["ADDED"])
        raise error from cause


def send(state, params):
    import httpx
    url = E["API_URL"]

    def post(content, **headers):
        return httpx.post(url + "/echo", content=content, headers={k.replace("_", "-"): v for k, v in headers.items()}).text

    def body(name):
        return json.dumps({"note": E[name]})
    told = []
    told.append(post(gzip.compress(body("ZIPPED").encode()), content_encoding="gzip", content_type="application/json"))
    told.append(post(zlib.compress(body("DEFLATED").encode()), content_encoding="deflate"))
    told.append(post(b"\\xef\\xbb\\xbf" + body("MARKED").encode() , content_type="application/json"))
    told.append(post(json.dumps({"pw": "pwd-6619-Yhnuj", "n": E["WIDE"]}).encode("utf-16"), content_type="application/json; charset=utf-16"))
    told.append(post(E["LATIN"].encode("latin-1"), content_type="text/plain; charset=iso-8859-1"))
    told.append(post("x=" + "".join("%%%02X" % b for b in E["PERCENT"].encode())))
    told.append(post('{"x": "' + "".join("\\\\u%04x" % ord(c) for c in E["ESCAPED"]) + '"}', content_type="application/json"))
    told.append(post(base64.b64encode(("me:" + E["SIXTYFOUR"]).encode())))
    told.append(post(E["HEXED"].encode().hex() + " " + E["COLONS"].encode().hex(":")))
    told.append(post(E["COLONS"].encode().hex(":").upper()))
    told.append(post(json.dumps({"pw": "pwd-6619-Yhnuj", "pass": "correct horse battery", "passwordHash": "hsh-6620-Yhnuj",
                                 "session_id": "sid-6621-Yhnuj"}),
                     content_type="application/json", x_session_id="ses-6617-Yhnuj", x_auth="aut-6618-Yhnuj"))
    told.append(httpx.post(url + "/echo", data={"pass": "frm-6622-Yhnuj", "user": "me"}).text)
    return {"told": told, "said": "it is correct horse battery, ses-6617-Yhnuj, aut-6618-Yhnuj, frm-6622-Yhnuj"}
"""

NODE = """\
version: "1.0"
start_at: {name}
end_at: [{name}]
nodes: [{{id: {name}, handler: {name}}}]
edges: []
"""

AGENT = """\
manifest_version: 1
default_llm: {id: m}
llms: [{id: m, version: "1.0.0", provider: openai, model_name: m}]
tools: [{id: login, version: "1.0.0", import_path: attack_tools.login}]
mcp_servers:
  - {id: vault, version: "1.0.0", transport: stdio, command: PYTHON, args: [vault.py], env: {VAULT_TOKEN: "${VAULT}"}}
"""
AGENT += USES_TOOLS

SCRIPTED = """\
harness: 1
env_passthrough: [VAULT]
scenarios:
  - name: leak
    manifest: leak.yaml
    handlers: {leak: attack_tools.leak}
    input: {}
    env: {MY_TOKEN: scn-6627-Yhnuj}
    expect: {state: {told: [x], text: nothing}}
  - name: fail
    manifest: fail.yaml
    handlers: {fail: attack_tools.fail}
    input: {}
  - name: tell
    manifest: tell.yaml
    handlers: {tell: attack_tools.tell}
    input: {}
    expect: {state: {told: [x], text: nothing}}
  - name: shout
    manifest: shout.yaml
    handlers: {shout: attack_tools.shout}
    input: {}
  - name: guide
    manifest: guide.yaml
    mcp: {vault: real}
    env: {MY_TOKEN: scn-6627-Yhnuj}
    llm:
      - {tool_calls: [{name: open_vault, args: {}}, {name: login, args: {password: arg-6626-Yhnuj, note: scn-6627-Yhnuj}}]}
      - {reply: "done with arg-6626-Yhnuj and scn-6627-Yhnuj"}
    tools: {login: {return: ok}}
    input: Open it.
    expect: {output: nothing}
"""
RECORDED = """\
harness: 1
env_passthrough: [VAULT]
scenarios:
  - {name: send, manifest: send.yaml, cassette: send, handlers: {send: attack_tools.send}, input: {},
     expect: {state: {told: {$len: 12}}}}
  - {name: say, manifest: say.yaml, cassette: say, handlers: {say: attack_tools.say}, input: {}, expect: {path: [say]}}
  - {name: open, manifest: open.yaml, cassette: open, input: Open it., expect: {call_counts: {mcp: 1}}}
"""
SERVED = """\
harness: 1
scenarios: [{name: served, manifest: guide.yaml, env: {VAULT: v}, input: hi, llm: [{reply: fine}]}]
"""
LOCALS = """\
import json

FORMS = json.load(open("forms.json"))


def test_locals():
    first, second, third = (FORMS[at : at + 70] for at in (0, 70, 140))
    {}
    assert first == second == third
"""


def broken() -> str:
    """Return a scenario file with an unknown key on each line that has a secret of a form."""
    lines = [f"  - {{name: n{at}, repaly: {json.dumps(one.text)}}}" for at, one in enumerate(forms.PLANTED)]
    return "\n".join(["harness: 1", "manifest: tell.yaml", "scenarios:", *lines, ""])


def files(folder: Path) -> dict[str, str]:
    """Return the files of the project by name."""
    tools = TOOLS.replace("= LATE", f"= {LITERALS['set in a run']!r}")
    tools = tools.replace("FIELD", repr(LITERALS["field in a text"]))
    login = "\n\nfrom langchain_core.tools import tool\n\n@tool\ndef login(password: str, note: str) -> str:\n    'Log in.'\n    return 'ok'\n"
    return {
        ".env": f"DOTENV={LITERALS['dotenv']}\n",
        "attack_tools.py": tools + login,
        "vault.py": VAULT,
        "guide.yaml": AGENT.replace("PYTHON", sys.executable),
        "open.yaml": AGENT.replace("PYTHON", sys.executable).replace("vault.py", "open.py"),
        "open.py": VAULT.replace('"opened with " + os.environ["VAULT_TOKEN"]', 'open("forms.json").read()'),
        "forms.json": json.dumps([one.text for one in forms.PLANTED]),
        "broken.scenario.yaml": broken(),
        "served.scenario.yaml": SERVED,
        "test_locals.py": LOCALS.format(
            "\n    ".join(f"a{at} = FORMS[{at}]" for at in range(len(forms.PLANTED)))
        ),
        "scripted.scenario.yaml": SCRIPTED,
        "recorded.scenario.yaml": RECORDED,
        **{
            f"{name}.yaml": NODE.format(name=name)
            for name in ("leak", "fail", "send", "tell", "shout", "say")
        },
    }


def leaks(data: bytes | str) -> set[str]:
    """Return the keys of the planted secrets that are in the data, and the forms whose secrets are in it."""
    data = data.encode() if isinstance(data, str) else data
    found = {how for how, value in SECRETS.items() if found_in(data, value)}
    text = (data + b"".join(unpacked(data))).decode("utf-8", "replace")
    return found | {one.form for one in forms.PLANTED if one.shown_in(text)}
