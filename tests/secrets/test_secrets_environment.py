"""The variables of the environment that are secrets, and the secret parts of their values."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from harness.secrets import Secrets
from tests.secrets.sample import is_replaced, words


@pytest.mark.parametrize(
    "name",
    words(
        """
        OPENAI_API_KEY OPENAI_APIKEY GITHUB_TOKEN HF_TOKEN_2 DB_PASSWORD db_passwd SMTP_PASS DB_PWD APP_SECRET
        AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID
        VAULT_SECRET_ID RSA_PRIVATE_KEY_PROD SERVICE_CREDENTIALS STRIPE_KEY NPM_AUTH
        npm_config__authToken SLACK_WEBHOOK SENTRY_DSN SESSION_COOKIE SSH_PASSPHRASE
        """
    ),
)
def test_values_of_variables_with_a_secret_name_are_replaced(name: Any) -> None:
    assert Secrets({name: "q7Rt0-Lm2xP"}).text("is q7Rt0-Lm2xP here") == f"is <secret:{name}> here"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSH_AUTH_SOCK", "/run/user/1000/agent.sock"),
        ("TOKENIZERS_PARALLELISM", "enabled-1"),
        ("XAUTHORITY", "/home/user/.Xauthority"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/srv/keys/account.json"),
        ("OAUTH_TOKEN_URL", "https://auth.example/token1"),
        ("MAX_TOKENS", "64000000"),
        ("TOKEN_LIMIT", "100000000"),
        ("AUTH_MODE", "oauth2-bearer"),
        ("KEYBOARD", "us-intl-1"),
        ("API_KEY", "false"),
        ("API_KEY", "1"),
        ("API_KEY", "abc12"),
        ("API_KEY", "placeholder"),
        ("API_KEY", "xxxxxxxxxx"),
        ("API_TOKEN", "123456"),
        ("HOME", "q7Rt0-Lm2xP"),
    ],
)
def test_values_of_other_variables_are_not_replaced(name: Any, value: Any) -> None:
    assert not is_replaced({name: value}, value)


def test_an_existing_path_is_not_a_secret_and_another_may_be(tmp_path: Path) -> None:
    assert not is_replaced({"APP_SECRET": str(tmp_path)}, str(tmp_path))
    assert is_replaced({"APP_SECRET": "/bPxRfiCYEXAMPLEKEY"}, "/bPxRfiCYEXAMPLEKEY")


def test_variables_named_in_settings_are_secret_whatever_their_value() -> None:
    assert is_replaced({"ACME_SITE": "abc"}, "abc", named=("ACME_*",))
    assert is_replaced({"ACME_SITE": "true"}, "true", named=("X", "ACME_SITE"))
    assert not is_replaced({"ACME_SITE": "ab"}, "ab", named=("ACME_*",))
    assert not is_replaced({"OTHER": "abcdef"}, "abcdef", named=("ACME_*",))


def test_white_space_around_a_value_is_ignored() -> None:
    assert Secrets({"APP_TOKEN": " q7Rt0-Lm2xP\n"}).text("q7Rt0-Lm2xP") == "<secret:APP_TOKEN>"


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("DATABASE_URL", "postgres://app:S3cr%21etPw@db.example/app", "S3cr!etPw"),
        ("HTTPS_PROXY", "http://me:with/sl@sh1@proxy.example:3128", "with/sl@sh1"),
        ("SENTRY_DSN", "https://9f8e7d6c5b4a39281706@o1.ingest.example/42", "9f8e7d6c5b4a39281706"),
        ("SEARCH_URL", "https://search.example/?api_key=Zq81kdjEwp&n=5", "Zq81kdjEwp"),
        ("SLACK_WEBHOOK_URL", "https://hooks.example/services/T00/B00/Xq81kdjE", "services/T00/B00/Xq81kdjE"),
        ("STORE_CONNECTION_STRING", "Endpoint=sb://a.example/;SharedAccessKey=Zq81kdjEwp=", "Zq81kdjEwp="),
        ("SERVICE_CREDENTIALS", '{"type": "x", "private_key": "-----Zq81\\nkdjEwp"}', "-----Zq81\nkdjEwp"),
        ("OPENAI_API_KEYS", "sk-Zq81kdjEwp,sk-Lm20sowQrt", "sk-Lm20sowQrt"),
        ("BASIC_AUTH", "user:Zq81kdjEwp", "Zq81kdjEwp"),
        ("APP_AUTHORIZATION", "Bearer Zq81kdjEwp", "Zq81kdjEwp"),
    ],
)
def test_the_secret_part_of_a_value_is_replaced(name: Any, value: Any, part: Any) -> None:
    assert Secrets({name: value}).text(f"({part})") == f"(<secret:{name}>)"


def test_the_public_part_of_a_url_is_not_replaced() -> None:
    secrets = Secrets({"DATABASE_URL": "postgres://application:S3cretPw12@db.example/application"})
    assert secrets.text("application at db.example") == "application at db.example"


def test_a_value_of_two_variables_gets_the_name_of_the_first() -> None:
    one = {"B_TOKEN": "q7Rt0-Lm2xP", "A_TOKEN": "q7Rt0-Lm2xP", "A_URL": "https://u:q7Rt0-Lm2xP@a.example"}
    assert Secrets(one).text("q7Rt0-Lm2xP") == "<secret:A_TOKEN>"
    assert Secrets(dict(reversed(one.items()))).text("q7Rt0-Lm2xP") == "<secret:A_TOKEN>"


LINES = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "7Rt0Lm2xPb4Yv6Hc9Sa3Fu5GiZq81kdj")
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{LINES[0]}\n{LINES[1]}\n-----END RSA PRIVATE KEY-----\n"


@pytest.mark.parametrize("stored", [PEM, PEM.replace("\n", "\\n")], ids=["lines", "escapes"])
@pytest.mark.parametrize(
    "shown", [PEM, PEM.replace("\n", "\\n"), PEM.replace("\n", "\\\\n"), b64encode(PEM.encode()).decode()]
)
@pytest.mark.parametrize("name", ["SIGNING_KEY", "NOTE"])
def test_a_key_is_found_however_its_line_breaks_are_written(name: str, stored: str, shown: str) -> None:
    scrubbed = Secrets({name: stored}).text(f"it is {shown} and {LINES[1]}")
    assert not any(line in scrubbed for line in (*LINES, shown))


def test_each_secret_of_a_credential_in_json_is_found_on_its_own() -> None:
    account = {
        "type": "service_account",
        "project_id": "my-project-71",
        "private_key_id": "3f0c2e91ab7744d8aa10",
        "private_key": PEM,
        "client_email": "me@my-project-71.iam.gserviceaccount.com",
        "refresh_token": "1//0g-Zq81kdjEwpX",
    }
    shown = Secrets({"GOOGLE_CREDENTIALS": json.dumps(account)}).text(
        f"{account!r} {LINES[0]} {account['refresh_token']}"
    )
    assert [
        value for value in (account["private_key_id"], *LINES, account["refresh_token"]) if value in shown
    ] == []
    assert "my-project-71" in shown
