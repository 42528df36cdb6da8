"""Environment variables that are shown with their names, and what makes their values known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.secrets import Secrets, bare_url, bare_urls
from harness.secrets.environment import Variables
from tests.recording.safety import parrots


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DB_PASSWORD", "ab12x"),
        ("API_TOKEN", "1234567"),
        ("ACME_PIN_TOKEN", "secret"),
        ("ACME_API_KEY", "false"),
        ("ACME_PIN", "0000"),
        ("STRIPE_KEY", "ab12x"),
        ("SMTP_PASS", "x"),
        ("NPM_AUTH", "abc"),
        ("SENTRY_DSN", "https://a.example/1"),
        ("SLACK_WEBHOOK_URL", "https://hooks.example/a"),
        ("SERVICE_CREDENTIALS", "/srv/keys/account.json"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
    ],
)
def test_the_value_of_a_variable_with_a_secret_name_is_never_shown(name: Any, value: Any) -> None:
    for environment in ({}, {name: value}, {"OTHER_PASSWORD": value}):
        assert Secrets(environment).variable(name, value) == f"<secret:{name}>"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_TOKENS", "4096"),
        ("TOKEN_BUDGET", "4096"),
        ("TOKEN_LIMIT", "100"),
        ("EOS_TOKEN", "</s>"),
        ("AUTH_MODE", "oauth2"),
        ("USE_AUTH", "true"),
        ("SORT_KEY", "created_at"),
        ("KEYBOARD", "us"),
        ("PWD", "/home/me"),
        ("OAUTH_TOKEN_URL", "https://auth.example/token"),
        ("SECRET_NAME", "prod/db"),
        ("LOCAL_MODEL_ENDPOINT", "http://gpu.example:8000/v1/chat/completions"),
        ("MODEL_GATEWAY", "https://models.example/api/v2/generate?api-version=1"),
        ("API_KEY", ""),
        ("CITY", "Oslo"),
    ],
)
def test_values_of_other_variables_are_shown(name: Any, value: Any) -> None:
    assert Secrets({}).variable(name, value) == value


def test_values_of_variables_named_in_settings_are_not_shown() -> None:
    assert Secrets({}, named=["ACME_*"]).variable("ACME_SITE", "ab") == "<secret:ACME_SITE>"


def test_secrets_inside_the_value_of_another_variable_are_replaced() -> None:
    secrets = Secrets({"API_TOKEN": "q7Rt0-Lm2xP"})
    assert secrets.variable("NOTE", "is q7Rt0-Lm2xP") == "is <secret:API_TOKEN>"
    assert secrets.variable("DATABASE_URL", "pg://me:pw@db.example/x") == (
        "pg://%3Csecret%3Auserinfo%3E@db.example/x"
    )
    assert secrets.variable("MAPS", "https://a.example/?key=abc") == (
        "https://a.example/?key=%3Csecret%3Akey%3E"
    )
    assert secrets.variable("SETTINGS", '{"password": "x"}') == '{"password": "<secret:password>"}'


def test_a_cassette_keeps_no_variable_with_a_secret_name(tmp_path: Path) -> None:
    passed = {"DB_PASSWORD": "ab12x", "ACME_PIN_TOKEN": "secret", "CITY": "Oslo"}
    with parrots(tmp_path) as project:
        project.parrot("one")
        scenarios = (tmp_path / "p.scenario.yaml").read_text()
        project.write("p.scenario.yaml", f"env_passthrough: [{', '.join(passed)}]\n{scenarios}")
        assert project.record(**passed, CI=None).code == 0
    meta = yaml.safe_load(project.cassettes()["one/meta.yaml"])
    assert {name: meta["environment"][name] for name in passed} == {
        "DB_PASSWORD": "<secret:DB_PASSWORD>",
        "ACME_PIN_TOKEN": "<secret:ACME_PIN_TOKEN>",
        "CITY": "Oslo",
    }


# URLs without credentials, query and fragment


def test_a_bare_url_has_neither_login_nor_query_nor_fragment() -> None:
    assert bare_url("https://me:pw@a.example:80/x?key=a secret#frag") == "https://a.example:80/x"
    assert bare_url("https://[a/x?key=secret") == "https://[a/x"
    assert bare_url("/x?key=secret") == "/x"


def test_urls_in_text_are_made_bare() -> None:
    said = "cannot reach 'https://me:pw@a.example/x?key=abc', nor http://b.example/#abc."
    assert bare_urls(said) == "cannot reach 'https://a.example/x', nor http://b.example/."


# Cost


def test_the_same_environment_is_read_once() -> None:
    environment = {f"PLACE_{number}": f"/opt/place-{number}/bin" for number in range(52)}
    environment |= {f"SERVICE_{number}_API_KEY": f"sk-{number}-Zx81kqLw9yT" for number in range(8)}
    variables = Variables()
    variables.add(environment)
    began = time.process_time()
    for _ in range(1000):
        secrets = Secrets(variables)
    assert time.process_time() - began < 0.2
    assert secrets.text("sk-7-Zx81kqLw9yT") == "<secret:SERVICE_7_API_KEY>"


def test_a_learned_secret_is_not_shared_between_instances() -> None:
    one, other = Secrets({"A_TOKEN": "q7Rt0-Lm2xP"}), Secrets({"A_TOKEN": "q7Rt0-Lm2xP"})
    one.learn("password", "tok-q7Rt0Lm2xP")
    assert other.text("tok-q7Rt0Lm2xP") == "tok-q7Rt0Lm2xP"
