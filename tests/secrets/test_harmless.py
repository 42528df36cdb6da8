"""Harmless values are kept, so that results are readable whatever variables a machine has."""

from __future__ import annotations

import time

import pytest

from harness.secrets import Secrets
from harness.secrets.environment import Variables
from tests.secrets.sample import is_replaced


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VALUE", "test"),
        ("COUNT", "1"),
        ("BIG", "1234567890"),
        ("LANG", "en_US.UTF-8"),
        ("SETTING", "en_US.UTF-8"),
        ("HOME", "/home/mary-anne"),
        ("ANYTHING", "/usr/share/zoneinfo"),
        ("PATH", "/usr/bin:/opt/tools3/bin"),
        ("USER", "mary-anne-1"),
        ("SERVICE", "db.example.com:5432"),
        ("BRANCH", "main"),
        ("GITHUB_REF_NAME", "feature/refunds"),
        ("CI_JOB_STAGE", "integration-tests"),
        ("STAGE", "production"),
        ("ANIMAL", "umbrella"),
        ("WHEN", "2026-11-22T10:00:00Z"),
        ("OPENAI_MODEL", "gpt-4o-mini"),
        ("OPENAI_BASE_URL", "https://api.example.com/v1"),
        ("AWS_DEFAULT", "eu-central-1"),
        ("DEBUG", "true"),
        ("PROJECT", "inventory"),
        ("ORDERS_SERVICE", "order-service"),
        ("CITY", "Frankfurt"),
        ("PGDATABASE", "inventory"),
        ("EMAIL", "Jane.Doe@example.com"),
        ("APP_VERSION", "2.14.0-rc.1"),
        ("BUILD_DATE", "2026-11-22T12:40:44Z"),
        ("GITHUB_SHA", "ffac537e6cbbf934b08745a378932722df287a53"),
        ("npm_config_user_agent", "npm/10.2.4 node/v20.11.0 linux x64"),
        ("APPDATA", "C:\\Users\\Jane\\AppData"),
        ("LS_COLORS", "rs=0:di=01;34"),
        ("RUNNER_NAME", "GitHub Actions 12"),
        ("AZURE_OPENAI_DEPLOYMENT", "gpt-4o-deployment"),
        ("DATABASE_URL", "sqlite:///app.db"),
        ("DB_PASSWORD", "cancel"),
        ("API_KEY", "abc12"),
    ],
)
def test_a_harmless_value_is_not_replaced(name: str, value: str) -> None:
    assert not is_replaced({name: value}, value)


@pytest.mark.parametrize(
    "value", ["Tr0ub4dor&3", "zx81 kdj wpq", "correct-horse-battery", "a1b2c3", "swordfish"]
)
def test_any_other_value_is_replaced_unless_its_name_is_public(value: str) -> None:
    assert is_replaced({"NOTE": value}, value)
    assert Secrets({"NOTE": value}, public=["NO*"]).text(value) == value


def test_session_ids_of_the_run_are_kept_and_those_of_servers_are_replaced() -> None:
    own = {"session_id": "thread-629f6fbed82c07cd", "agent_name": "casting"}
    assert Secrets({}).data(own) == own
    theirs = {"session_id": "629f6fbed82c07cd-thread", "secret": "thread-629f6fbed82c07cd"}
    assert Secrets({}).data(theirs) == {"session_id": "<secret:session_id>", "secret": "<secret:secret>"}


@pytest.mark.parametrize("name", ["S_PATH", "XPATH", "KEYS_DIR", "TOOL_HOME"])
def test_a_path_variable_that_holds_no_path_is_replaced(name: str) -> None:
    assert is_replaced({name: "pth-7162-Plmok"}, "pth-7162-Plmok")
    assert not is_replaced({name: "/srv/tools/v2"}, "/srv/tools/v2")


def test_secrets_with_values_too_weak_to_search_for_are_listed() -> None:
    variables = Variables()
    variables.add(
        {"DB_PASSWORD": "cancel", "API_KEY": "abc12", "OTHER_KEY": "none", "A_TOKEN": "q7Rt0-Lm2xP"}
    )
    assert list(variables.weak) == ["API_KEY", "DB_PASSWORD"]


@pytest.mark.parametrize(
    "part",
    [
        "lorem ipsum: dolor=sit, ",
        "a",
        'a="',
        "%41",
        "\\u0041",
        "password=",
        'password="x',
        "://a:",
        "\\",
        "QUJD",
        "token: ",
        "<password>",
        "<password a",
        "--token ",
        "-u a:",
        "login a password ",
        "password%3D",
        "cookie: a=",
        "&#45;",
        "H4sI",
        "eyJaaaaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "sk-a-",
        "\\n",
        "Bearer a1b2c3d4 ",
        "q7Rt0-…",
    ],
)
def test_scrubbing_a_long_text_is_fast(part: str) -> None:
    secrets = Secrets({"A_TOKEN": "q7Rt0-Lm2xP", "B": "zx81/kdj wpq"})
    text = part * (300_000 // len(part))
    began = time.process_time()
    secrets.text(text)
    secrets.data([text])
    assert time.process_time() - began < 4
