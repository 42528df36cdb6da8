"""Forms in which texts hold secrets: after a name, by their own shape, and encodings of values of the environment.

`PLANTED` has three secrets of each form, each with the text that holds it. Variables of `ENVIRONMENT` have harmless
names.
"""

from __future__ import annotations

import gzip
import html
import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote

Write = Callable[[str], str]

# By the name before the value. {} is the secret.
NAMED = {
    "yaml": "host: db\npassword: {}\nport: 5432",
    "token": "the server says token: {} and waits",
    "assignment": "api_key = {}",
    "option": "running app --token {} --verbose",
    "option with _": "running app --access_token {}",
    "option with =": "running app --api-key={} --verbose",
    "option in a list": "['app', '--password', '{}', 'x']",
    "option in JSON": '["app", "--client-secret", "{}", "x"]',
    "XML element": "<login><user>me</user><password>{}</password></login>",
    "XML with a prefix": '<soap:Header><wsse:Password Type="text">{}</wsse:Password></soap:Header>',
    "XML attribute": '<login user="me" password="{}"/>',
    "netrc": "machine db.example login me password {}",
    "netrc in lines": "machine db.example\n  login me\n  password {}\n",
    "curl -u": "curl -s -u me:{} https://db.example/",
    "curl --user": "curl --user 'me:{}' https://db.example/",
    "percent-encoded form": "body a%3D1%26password%3D{}%26b%3D2",
    "header": "X-Api-Key: {}",
    "header with any scheme": "Authorization: Custom {}",
    "cookie": "Cookie: theme=dark; session={}; n=1",
    "pair of a header": "[(b'accept', b'*/*'), (b'authorization', b'Bearer {}')]",
    "bearer": "sends Bearer {} to the server",
    "shell": "export DB_PASSWORD={}\nexport HOME_PAGE=/x",
    "local variable": "password   = '{}'\nself       = 4",
    "block of YAML": "secret: |\n  {}\nhost: db",
    "properties": "spring.datasource.password={}",
    "escaped JSON": '{{\\"client_secret\\": \\"{}\\", \\"n\\": 1}}',
    "connection string": "Server=db;User=me;Password={};Database=x",
    "login in a URL": "postgres://me:{}@db.example/x",
}  # fmt: skip
VALUES = ("Zq81kdjEwpX{:02}", "pln-71{:02}-okijn", "r7Rt0_Lm2xP.{:02}")

# Encodings of values of variables.
ENCODED: dict[str, Write] = {
    "plain": str,
    "base64": lambda value: b64encode(value.encode()).decode(),
    "base64 of gzip": lambda value: b64encode(gzip.compress(f"it is {value}.".encode(), mtime=0)).decode(),
    "base64 of zlib": lambda value: b64encode(zlib.compress(f"it is {value}.".encode())).decode(),
    "base64 twice": lambda value: b64encode(b64encode(f"me:{value}".encode())).decode(),
    "HTML": html.escape,
    "HTML numbers": lambda value: "".join(f"&#{ord(char)};" if not char.isalnum() else char for char in value),
    "upper case": str.upper,
    "lower case": str.lower,
    "hex": lambda value: value.encode().hex(),
    "hex in upper case": lambda value: value.encode().hex().upper(),
    "percent": lambda value: quote(value, safe=""),
    "percent twice": lambda value: quote(quote(value, safe=""), safe=""),
    "JSON in JSON": lambda value: json.dumps(json.dumps(value)),
    "cut at the end": lambda value: value[:-3] + "...",
    "cut at the start": lambda value: "…" + value[3:],
}  # fmt: skip
KNOWN = ("Tr0ub&4<dor>-{:02}x", "zx81/Kdj+wpq-{:02}", "q\"uo'te7Gq-Mn{:02}")

_ANY = "Zq81kdjEwpXn7Rt0Lm2xPb4Yv6Hc9Sa3Fu5Gi"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR{}"
PEM_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ{}\n7Rt0Lm2xPb4Yv6Hc9Sa3Fu5GiZq81kdjEwpXn7Rt0Lm2xPb4Y{}"
# By their own shape, in any text.
SHAPES = {
    "AWS": "AKIA{:.14}",
    "GitHub": "ghp_{:.34}",
    "GitHub, fine": "github_pat_11ABCDEFG0{:.30}",
    "GitLab": "glpat-{:.18}",
    "OpenAI": "sk-proj-{:.34}",
    "Anthropic": "sk-ant-api03-{:.34}",
    "Google": "AIza{:.33}",
    "Google OAuth": "ya29.{:.34}",
    "Slack": "xoxb-123456789012-{:.24}",
    "Slack hook": "https://hooks.slack.com/services/T0AAAA/B0BBBB/{:.22}",
    "Stripe": "sk_live_{:.22}",
    "Hugging Face": "hf_{:.32}",
    "npm": "npm_{:.34}",
    "SendGrid": "SG.Zq81kdjEwpXn7Rt0Lm2x.{:.34}",
}  # fmt: skip


class Planted(NamedTuple):
    """A secret of a form, and the text that holds it."""

    form: str
    secret: str
    text: str
    variable: bool = False
    """True if the secret is the value of a variable."""

    def shown_in(self, data: str) -> bool:
        """True if data shows the secret, or the part of it that the text has left."""
        written = self.text.strip().strip(".…") if self.variable else self.secret
        return written in data or json.dumps(written)[1:-1] in data or html.escape(written) in data


def _all() -> Iterator[Planted]:
    for number, (form, text) in enumerate(NAMED.items()):
        for value in VALUES:
            secret = value.format(number)
            yield Planted(form, secret, text.format(secret))
    for number, (form, write) in enumerate(ENCODED.items()):
        for value in KNOWN:
            secret = value.format(number)
            yield Planted(form, secret, f" {write(secret)} ", variable=True)
    for form, shape in SHAPES.items():
        for digits in ("03", "17", "25"):
            body = _ANY.upper() if form == "AWS" else _ANY
            secret = shape.format(body) + digits
            yield Planted(form, secret, f"use {secret} for it")
    for digits in ("03", "17", "25"):
        yield Planted("JWT", JWT.format(digits), f"use {JWT.format(digits)} for it")
        body = PEM_BODY.format(digits, digits)
        for form, written in (("PEM", body), ("PEM with escapes", body.replace("\n", "\\n"))):
            mark = "\n" if form == "PEM" else "\\n"
            text = f"-----BEGIN PRIVATE KEY-----{mark}{written}{mark}-----END PRIVATE KEY-----{mark}"
            yield Planted(form, written.split(mark)[1], text)


PLANTED = tuple(_all())
ENVIRONMENT = {f"THING_{number}": one.secret for number, one in enumerate(PLANTED) if one.variable}
FORMS = tuple(dict.fromkeys(one.form for one in PLANTED))
