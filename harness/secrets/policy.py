"""What counts as a secret: by the name it goes by, by where that name stands, and by the value.

Names are read as words: `apiKey`, `API_KEY` and `x-api-key` all end in the words `api key`. The sections below:

    fields        is a field, header or parameter with this name for a secret?
    JSON          is this string or number under such a name a secret?
    variables     does this environment variable hold a secret?
    values        does a value look like a secret, or like a word that stands where one would?

`harness.secrets.json_locations` applies the rules for JSON to names beside and around a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case: `X-Amz-Signature`, `clientSecret`, `API_KEY_2`."""
    return tuple(word.lower() for word in _WORD.findall(name))


# ---------------------------------------------------------------- fields, headers, parameters

_SECRET: Final = word_set(
    "password passwd passphrase passcode pwd secret apikey token authorization credential credentials cookie "
    "cookies signature sig bearer jwt authtoken accesstoken refreshtoken idtoken sessiontoken bearertoken apitoken "
    "clientsecret apisecret privatekey secretkey accesskey passwords passphrases secrets apikeys"
)
SECRET_KEYS: Final = word_set(
    "api access private secret auth signing encryption subscription account shared master service functions"
)
# Tokens of text, and positions in a list.
HARMLESS_TOKENS: Final = word_set(
    "page next prev previous continuation cursor sync progress resume skip cancellation eos bos pad unk mask "
    "cls sep special stop start end first last image text current each per by position"
)
HARMLESS_KEYS: Final = word_set("cache surrogate idempotency partition sort primary foreign public")
# Tokens that give access; several `tokens` of another kind are a count.
_DOOR_TOKENS: Final = word_set(
    "access refresh id api auth bearer session security secret csrf xsrf login bot personal client device jwt"
)
# The last word of a name that describes a secret, or points to one.
ABOUT: Final = word_set(
    "mode type method url uri host port endpoint file path dir directory sock socket name names limit count ttl "
    "expiry expires expiration timeout length size backend provider enabled disabled parallelism leeway algorithm "
    "issuer audience scheme header prefix suffix version region scope scopes user username env keyring id ids "
    "manager store helper command cmd"
)


@lru_cache(maxsize=4096)
def secret_field(name: str) -> bool:
    """True if a field with this name holds a secret anywhere: `api_key`, `accessToken`, not `next_page_token`."""
    parts = words(name)
    if not parts:
        return False
    before = parts[-2] if len(parts) > 1 else ""
    if parts[-1] == "token":
        return before not in HARMLESS_TOKENS
    if parts[-1] == "signature":
        return before not in {"thought", "function", "method", "type"}
    return (
        parts[-1] in _SECRET
        or (parts[-1] in {"key", "keys"} and before in SECRET_KEYS)
        or (parts[-1] == "tokens" and before in _DOOR_TOKENS)
        or parts[-3:] == ("access", "key", "id")
    )


def secret_header(name: str) -> bool:
    """True if a header with this name holds a secret: `authorization`, `set-cookie`, all that end in `-key`."""
    parts = words(name)
    return secret_field(name) or (len(parts) > 1 and parts[-1] == "key" and parts[-2] not in HARMLESS_KEYS)


def secret_parameter(name: str) -> bool:
    """True if a parameter of a query or form with this name holds a secret: fields, `key`, `auth`, `hmac`, `pin`."""
    return secret_field(name) or words(name) in (("key",), ("auth",), ("hmac",), ("pin",))


@lru_cache(maxsize=4096)
def secret_key(name: str) -> bool:
    """True if a key of a JSON object with this name may hold a secret: fields, `auth`, `pin`. See `holds_secret`."""
    return secret_field(name) or words(name) == ("auth",) or words(name)[-1:] == ("pin",)


def secret_name(name: str) -> bool:
    """True if this is the name of a secret in any of these places."""
    return secret_key(name) or secret_parameter(name) or secret_header(name)


# ---------------------------------------------------------------- strings and numbers of JSON

# The value of these is a secret as a number too, and so are numbers below them.
_NUMERIC: Final = word_set(
    "password passwd passphrase passcode pwd pin secret apikey credential credentials cookie authtoken accesstoken "
    "refreshtoken idtoken sessiontoken bearertoken apitoken clientsecret apisecret privatekey secretkey accesskey"
)
_SEVERAL: Final = word_set("passwords passphrases secrets apikeys keys tokens cookies credentials")
# Ways to log in, and results of it.
_METHODS: Final = word_set(
    "oauth oauth2 oidc openid saml sso mtls tls ssl digest ntlm kerberos negotiate hmac jwt key api-key session "
    "cookie header query manual auto automatic ok success failed failure denied forbidden unauthorized authenticated"
)
_MODEL_TEXT: Final = word_set("logprob text")


def holds_secret(name: str, value: str, siblings: Mapping[str, object]) -> bool:
    """True if a string under a secret name in JSON is a secret, by its value and by the values beside it.

    A `token` beside its `logprob` is text of a model, and the `signature` of its thoughts has to be sent back.
    """
    if not value:
        return False
    parts = words(name)
    if parts[-1] == "token":
        return "logprob" not in siblings
    if parts[-1] in {"signature", "sig"}:
        thought = "thinking" in siblings or siblings.get("type") in {"thinking", "signature_delta"}
        return not thought and not re.search(r"[\s(]", value)
    if parts == ("auth",):
        return not common(value) and value.lower() not in _METHODS
    if parts[-1] == "pin":
        return re.fullmatch(r"\d{4,12}", value) is not None
    return True


def holds_secrets(name: str, members: Mapping[str, object] | None, siblings: Mapping[str, object]) -> bool:
    """True if everything in an object, or in a list (`members` is None), under a secret name is a secret.

    Not so for the parts of a function's signature or of a model's token, and for what is pinned to a board.
    """
    last = words(name)[-1]
    if last == "token":
        return not _MODEL_TEXT.intersection(members or ()) and "logprob" not in siblings
    return last not in {"signature", "sig", "pin"}


def secret_number(name: str, digits: str) -> bool:
    """True if a whole number is a secret as the value of this name: a `pin`, a `password`; not 3 `api_keys`."""
    parts = words(name)
    return (
        parts[-1] not in _SEVERAL and numbers_below(name) and (parts[-1] != "pin" or 4 <= len(digits) <= 12)
    )


def numbers_below(name: str) -> bool:
    """True if numbers in a list or object under this name are secrets: `pins`, `passwords`, `api_keys`."""
    parts = words(name)
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if last in {"token", "tokens"}:
        return last == "token" and before in _DOOR_TOKENS
    if last in {"key", "keys"}:
        return before in SECRET_KEYS
    return last in _NUMERIC or last.removesuffix("s") in _NUMERIC


# ---------------------------------------------------------------- environment variables

_SURE: Final = word_set(
    "token secret secrets password passwords passwd passphrase credential credentials apikey apikeys "
    "authorization webhook bearer jwt pat"
)
_MAYBE: Final = word_set("key keys auth pass pwd dsn cookie cookies signature sas tokens")
_COUNTS: Final = word_set("max min num number total budget window per rate average")
_FLAGS: Final = word_set("true false yes no on off 0 1 none null")
_PATH: Final = re.compile(r"(?:~|\.{0,2})/\S*|[A-Za-z]:\\.*")
_FILE: Final = re.compile(r".*\.(?:json|pem|key|crt|cer|sock|txt|toml|ya?ml|ini|env|cfg|conf)", re.IGNORECASE)


def is_named(name: str, named: Sequence[str]) -> bool:
    """True if the settings name this variable, or a pattern that it matches."""
    return any(fnmatchcase(name, pattern) for pattern in named)


def secret_variable(name: str, value: str) -> bool:
    """True if the value of an environment variable is a secret, by its name and by the value."""
    if len(value) < 6 or common(value) or _is_path(value) or (value.isdecimal() and len(value) < 8):
        return False
    parts = words(name)
    return _surely(parts) or (
        _maybe(parts) and (looks_random(value) or (parts[-1] in {"pass", "pwd"} and len(parts) > 1))
    )


def secret_by_name(name: str, value: str) -> bool:
    """True if a variable is for a secret by its name, unless its value is a count or a switch.

    For writing the variable itself, where a short or common value reveals as much as a long one.
    """
    parts = words(name)
    if parts[-1:] in (("pin",), ("passcode",)):
        return True
    if value.strip().isdecimal() and (_COUNTS & set(parts) or parts[-1:] == ("tokens",)):
        return False
    if _surely(parts):
        return _SURE & set(parts) != {"token"} or not any(
            pair[1] == "token" and pair[0] in HARMLESS_TOKENS for pair in pairwise(parts)
        )
    if not _maybe(parts) or parts == ("pwd",) or value.strip().lower() in _FLAGS:
        return False
    return not any(pair[1] in {"key", "keys"} and pair[0] in HARMLESS_KEYS for pair in pairwise(parts))


def _surely(parts: tuple[str, ...]) -> bool:
    pair = set(pairwise(parts))
    if pair & {("access", "key"), ("secret", "id")} and parts[-1] in {"key", "id"}:
        return True
    if "webhook" in parts and parts[-1] in {"url", "uri"}:
        return True
    if not parts or parts[-1] in ABOUT:
        return False
    if pair & {(kind, "key") for kind in SECRET_KEYS} or pair & {("api", "keys"), ("connection", "string")}:
        return True
    return bool(_SURE & set(parts))


def _maybe(parts: tuple[str, ...]) -> bool:
    return bool(parts) and parts[-1] not in ABOUT and bool(_MAYBE & set(parts))


def _is_path(value: str) -> bool:
    if not _PATH.fullmatch(value):
        return False
    try:
        return _FILE.fullmatch(value) is not None or Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


# ---------------------------------------------------------------- values

_COMMON: Final = word_set(
    "true false none null yes no on off default disabled enabled dummy fake test testing example sample "
    "placeholder changeme change-me password passwd secret token api-key api_key apikey credentials username "
    "required optional string integer number boolean object function undefined unknown anonymous unused empty "
    "not-needed not_needed notneeded no-key-required redacted [redacted] hidden masked localhost ollama "
    "lm-studio production development staging basic bearer include same-origin"
)
_MASKED: Final = re.compile(r".*(?:\*\*\*|\.\.\.|…).*", re.DOTALL)
# The name of a variable, or a place for its value.
_NAMED: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\$?\{.*\}|<.*>|%.*%|\$[A-Z_]+", re.DOTALL)


def looks_random(value: str) -> bool:
    """True for a value that a machine made: long, without spaces, with letters and digits or in mixed case."""
    if len(value) < 8 or re.search(r"\s", value):
        return False
    letters = any(char.isalpha() for char in value)
    mixed = value.lower() != value and value.upper() != value
    return letters and (any(char.isdecimal() for char in value) or (mixed and len(value) >= 16))


def common(value: str) -> bool:
    """True for a common word, or one repeated character, such as people write in place of a secret."""
    return value.lower() in _COMMON or len(set(value)) <= 1


def stands_for_another(value: str) -> bool:
    """True for the name of a variable, a place to be filled in, and a secret that was masked."""
    return bool(_NAMED.fullmatch(value) or _MASKED.fullmatch(value))


# The value of these may be any word.
_UNCERTAIN: Final = word_set("auth hmac sig signature cookie cookies")


def worth_learning(name: str, value: str) -> bool:
    """True if a value found under a secret name can be searched for everywhere, since no other text has it."""
    if len(value) < 8 or re.search(r"\s", value) or common(value) or "://" in value:
        return False
    if stands_for_another(value):
        return False
    return looks_random(value) or (_certain(words(name)) and not secret_name(value))


def _certain(parts: tuple[str, ...]) -> bool:
    if parts[-1:] == ("key",):
        return len(parts) > 1 and parts[-2] in SECRET_KEYS
    return parts not in (("token",), ("credentials",)) and not _UNCERTAIN & set(parts[-1:])
