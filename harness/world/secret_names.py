"""What looks secret: names of variables, fields, headers and query parameters; and what looks like a value.

Names are read as words: `apiKey`, `API_KEY` and `x-api-key` all end in the words `api key`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")

_SECRET = _names(
    "password passwd passphrase pwd secret apikey token authorization credential credentials cookie cookies "
    "signature sig bearer jwt authtoken accesstoken refreshtoken idtoken sessiontoken bearertoken apitoken "
    "clientsecret apisecret privatekey secretkey accesskey"
)
_SECRET_KEYS = _names(
    "api access private secret auth signing encryption subscription account shared master service functions"
)
# A token of text, or a place in a list: nothing that opens a door.
_HARMLESS_TOKENS = _names(
    "page next prev previous continuation cursor sync progress resume skip cancellation eos bos pad unk mask "
    "cls sep special stop start end first last image text current each per by position"
)
_HARMLESS_KEYS = _names("cache surrogate idempotency partition sort primary foreign public")

# Under these there may be any word.
_UNCERTAIN = _names("auth hmac sig signature cookie cookies")

_VARIABLE = _names(
    "token secret secrets password passwords passwd passphrase credential credentials apikey apikeys "
    "authorization webhook bearer jwt pat"
)
_VARIABLE_MAYBE = _names("key keys auth pass pwd dsn cookie cookies signature sas tokens")
# The last word of a variable that tells something about a secret, and of those that point to one.
_ABOUT = _names(
    "mode type method url uri host port endpoint file path dir directory sock socket name names limit count ttl "
    "expiry expires expiration timeout length size backend provider enabled disabled parallelism leeway algorithm "
    "issuer audience scheme header prefix suffix version region scope scopes user username env keyring id ids "
    "manager store helper command cmd"
)

_COMMON = _names(
    "true false none null yes no on off default disabled enabled dummy fake test testing example sample "
    "placeholder changeme change-me password passwd secret token api-key api_key apikey credentials username "
    "required optional string integer number boolean object function undefined unknown anonymous unused empty "
    "not-needed not_needed notneeded no-key-required redacted [redacted] hidden masked localhost ollama lm-studio "
    "production development staging basic bearer include same-origin"
)
_MASKED = re.compile(r".*(?:\*\*\*|\.\.\.|…).*", re.DOTALL)
# The name of a variable, or a place for its value.
_NAMED = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\$?\{.*\}|<.*>|%.*%|\$[A-Z_]+", re.DOTALL)
_PATH = re.compile(r"(?:~|\.{0,2})/\S*|[A-Za-z]:\\.*")
_FILE = re.compile(r".*\.(?:json|pem|key|crt|cer|sock|txt|toml|ya?ml|ini|env|cfg|conf)", re.IGNORECASE)


def words(name: str) -> list[str]:
    """The words of a name, in lower case: `X-Amz-Signature`, `clientSecret`, `API_KEY_2`."""
    return [word.lower() for word in _WORD.findall(name)]


def secret_field(name: str) -> bool:
    """Does a field of JSON with this name hold a secret: `api_key`, `accessToken`, but not `next_page_token`?"""
    of = words(name)
    if not of:
        return False
    before = of[-2] if len(of) > 1 else ""
    if of[-1] == "token":
        return before not in _HARMLESS_TOKENS
    if of[-1] == "signature":
        return before not in {"thought", "function", "method", "type"}
    return (
        of[-1] in _SECRET
        or (of[-1] == "key" and before in _SECRET_KEYS)
        or of[-3:] == ["access", "key", "id"]
    )


def secret_header(name: str) -> bool:
    """Does a header with this name hold a secret: `authorization`, `set-cookie`, all that end in `-key`?"""
    of = words(name)
    return secret_field(name) or (len(of) > 1 and of[-1] == "key" and of[-2] not in _HARMLESS_KEYS)


def secret_parameter(name: str) -> bool:
    """Does a parameter of a query or form with this name hold a secret: fields, `key`, `auth`, `hmac`?"""
    return secret_field(name) or words(name) in (["key"], ["auth"], ["hmac"])


def secret_member(name: str, value: str, siblings: Mapping[str, object]) -> bool:
    """Is a string in an object a secret, by its name and those beside it?

    A `token` beside its `logprob` is text of a model, and the `signature` of its thoughts has to be sent back.
    """
    if not value or not secret_field(name):
        return False
    last = words(name)[-1]
    if last == "token":
        return "logprob" not in siblings
    if last in {"signature", "sig"}:
        thought = "thinking" in siblings or siblings.get("type") in {"thinking", "signature_delta"}
        return not thought and not re.search(r"[\s(]", value)
    return True


def secret_variable(name: str, value: str) -> bool:
    """Is the value of an environment variable a secret, by its name and its looks?"""
    if len(value) < 6 or common(value) or _is_path(value) or (value.isdecimal() and len(value) < 8):
        return False
    of = words(name)
    pair = set(pairwise(of))
    if pair & {("access", "key"), ("secret", "id")} and of[-1] in {"key", "id"}:
        return True
    if "webhook" in of and of[-1] in {"url", "uri"}:
        return True
    if not of or of[-1] in _ABOUT:
        return False
    if pair & {(kind, "key") for kind in _SECRET_KEYS} or pair & {("api", "keys"), ("connection", "string")}:
        return True
    if _VARIABLE & set(of):
        return True
    return bool(_VARIABLE_MAYBE & set(of)) and (
        looks_random(value) or (of[-1] in {"pass", "pwd"} and len(of) > 1)
    )


def worth_learning(name: str, value: str) -> bool:
    """May a value found under a key-like name be looked for everywhere, or is it a word that others say too?"""
    if len(value) < 8 or re.search(r"\s", value) or common(value) or "://" in value:
        return False
    if _NAMED.fullmatch(value) or _MASKED.fullmatch(value):
        return False
    return looks_random(value) or _certain(words(name))


def _certain(of: list[str]) -> bool:
    if of[-1:] == ["key"]:
        return of[-2:-1] != [] and of[-2] in _SECRET_KEYS
    return of not in (["token"], ["credentials"]) and not _UNCERTAIN & set(of[-1:])


def looks_random(value: str) -> bool:
    """Was a value made by a machine: long, in one piece, with letters and digits or in mixed case?"""
    if len(value) < 8 or re.search(r"\s", value):
        return False
    letters = any(char.isalpha() for char in value)
    mixed = value.lower() != value and value.upper() != value
    return letters and (any(char.isdecimal() for char in value) or (mixed and len(value) >= 16))


def common(value: str) -> bool:
    """Is it a word, or one character over and over, that stands where a secret would?"""
    return value.lower() in _COMMON or len(set(value)) <= 1


def _is_path(value: str) -> bool:
    if not _PATH.fullmatch(value):
        return False
    try:
        return _FILE.fullmatch(value) is not None or Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False
