"""Secrets of all forms of `tests.secrets.forms` are found in text, data and bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.secrets import Secrets
from tests.secrets.forms import ENVIRONMENT, FORMS, PLANTED


def test_there_are_enough() -> None:
    assert (len(PLANTED) >= 120, len(FORMS) >= 40) == (True, True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "scrub",
    [
        pytest.param(Secrets.text, id="text"),
        pytest.param(lambda secrets, text: json.dumps(secrets.data({"a": [text]})), id="data"),
        pytest.param(lambda secrets, text: secrets.body(text.encode(), "text/plain").decode(), id="body"),
        pytest.param(lambda secrets, text: secrets.text(json.dumps({"a": [text]})), id="JSON in a text"),
    ],
)
def test_a_secret_is_found(form: str, scrub: Any) -> None:
    planted = [one for one in PLANTED if one.form == form]
    assert [one for one in planted if one.shown_in(scrub(Secrets(ENVIRONMENT), one.text))] == []
