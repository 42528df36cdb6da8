"""Names of fields, headers and parameters that are for secrets.

Names are read as words: `apiKey`, `API_KEY` and `x-api-key` all end in the words `api key`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from harness.secrets.heuristics import common, looks_random, stands_for_another, word_set

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")

_SECRET = word_set(
    "password passwd passphrase passcode pwd secret apikey token authorization credential credentials cookie "
    "cookies signature sig bearer jwt authtoken accesstoken refreshtoken idtoken sessiontoken bearertoken apitoken "
    "clientsecret apisecret privatekey secretkey accesskey passwords passphrases secrets apikeys"
)
SECRET_KEYS = word_set(
    "api access private secret auth signing encryption subscription account shared master service functions"
)
# A token of text, or a place in a list: nothing that opens a door.
HARMLESS_TOKENS = word_set(
    "page next prev previous continuation cursor sync progress resume skip cancellation eos bos pad unk mask "
    "cls sep special stop start end first last image text current each per by position"
)
HARMLESS_KEYS = word_set("cache surrogate idempotency partition sort primary foreign public")
# Tokens of which nobody counts several.
_DOOR_TOKENS = word_set(
    "access refresh id api auth bearer session security secret csrf xsrf login bot personal client device jwt"
)
# The last word of a name that tells something about a secret, and of those that point to one.
ABOUT = word_set(
    "mode type method url uri host port endpoint file path dir directory sock socket name names limit count ttl "
    "expiry expires expiration timeout length size backend provider enabled disabled parallelism leeway algorithm "
    "issuer audience scheme header prefix suffix version region scope scopes user username env keyring id ids "
    "manager store helper command cmd"
)

# Under these there may be any word.
_UNCERTAIN = word_set("auth hmac sig signature cookie cookies")
# Under these a number is one that opens something, and one below them too.
_NUMERIC = word_set(
    "password passwd passphrase passcode pwd pin secret apikey credential credentials cookie authtoken accesstoken "
    "refreshtoken idtoken sessiontoken bearertoken apitoken clientsecret apisecret privatekey secretkey accesskey"
)
_SEVERAL = word_set("passwords passphrases secrets apikeys keys tokens cookies credentials")
# How one logs in, not with what.
_METHODS = word_set(
    "oauth oauth2 oidc openid saml sso mtls tls ssl digest ntlm kerberos negotiate hmac jwt key api-key session "
    "cookie header query manual auto automatic ok success failed failure denied forbidden unauthorized authenticated"
)
_MODEL_TEXT = word_set("logprob text")


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(name))


def words(name: str) -> list[str]:
    """The words of a name, in lower case: `X-Amz-Signature`, `clientSecret`, `API_KEY_2`."""
    return list(_words(name))


@lru_cache(maxsize=4096)
def secret_field(name: str) -> bool:
    """Does a field with this name hold a secret, wherever it is: `api_key`, `accessToken`, not `next_page_token`?"""
    of = _words(name)
    if not of:
        return False
    before = of[-2] if len(of) > 1 else ""
    if of[-1] == "token":
        return before not in HARMLESS_TOKENS
    if of[-1] == "signature":
        return before not in {"thought", "function", "method", "type"}
    return (
        of[-1] in _SECRET
        or (of[-1] in {"key", "keys"} and before in SECRET_KEYS)
        or (of[-1] == "tokens" and before in _DOOR_TOKENS)
        or of[-3:] == ("access", "key", "id")
    )


def secret_header(name: str) -> bool:
    """Does a header with this name hold a secret: `authorization`, `set-cookie`, all that end in `-key`?"""
    of = _words(name)
    return secret_field(name) or (len(of) > 1 and of[-1] == "key" and of[-2] not in HARMLESS_KEYS)


def secret_parameter(name: str) -> bool:
    """Does a parameter of a query or form with this name hold a secret: fields, `key`, `auth`, `hmac`, `pin`?"""
    return secret_field(name) or _words(name) in (("key",), ("auth",), ("hmac",), ("pin",))


@lru_cache(maxsize=4096)
def secret_key(name: str) -> bool:
    """May a key of a JSON object with this name hold a secret: fields, `auth`, `pin`? See `holds_secret`."""
    return secret_field(name) or _words(name) == ("auth",) or _words(name)[-1:] == ("pin",)


def secret_name(name: str) -> bool:
    """Is it the name of a secret anywhere?"""
    return secret_key(name) or secret_parameter(name) or secret_header(name)


def holds_secret(name: str, value: str, siblings: Mapping[str, object]) -> bool:
    """Is a string under a secret name in JSON a secret, by its looks and what is beside it?

    A `token` beside its `logprob` is text of a model, and the `signature` of its thoughts has to be sent back.
    """
    if not value:
        return False
    of = _words(name)
    if of[-1] == "token":
        return "logprob" not in siblings
    if of[-1] in {"signature", "sig"}:
        thought = "thinking" in siblings or siblings.get("type") in {"thinking", "signature_delta"}
        return not thought and not re.search(r"[\s(]", value)
    if of == ("auth",):
        return not common(value) and value.lower() not in _METHODS
    if of[-1] == "pin":
        return re.fullmatch(r"\d{4,12}", value) is not None
    return True


def holds_secrets(name: str, members: Mapping[str, object] | None, siblings: Mapping[str, object]) -> bool:
    """Is all that an object or a list (None) under a secret name has a secret?

    The signature of a function may have parts, and so may a token of a model, and what is pinned to a board.
    """
    last = _words(name)[-1]
    if last == "token":
        return not _MODEL_TEXT.intersection(members or ()) and "logprob" not in siblings
    return last not in {"signature", "sig", "pin"}


def secret_number(name: str, digits: str) -> bool:
    """Is a whole number right under this name a secret: a `pin`, a `password`, but not a `token` or 3 `api_keys`?"""
    of = _words(name)
    return of[-1] not in _SEVERAL and numbers_below(name) and (of[-1] != "pin" or 4 <= len(digits) <= 12)


def numbers_below(name: str) -> bool:
    """Are numbers in a list or an object under this name secrets: under `pins`, `passwords`, `api_keys`?"""
    of = _words(name)
    last, before = of[-1], of[-2] if len(of) > 1 else ""
    if last in {"token", "tokens"}:
        return last == "token" and before in _DOOR_TOKENS
    if last in {"key", "keys"}:
        return before in SECRET_KEYS
    return last in _NUMERIC or last.removesuffix("s") in _NUMERIC


def worth_learning(name: str, value: str) -> bool:
    """May a value found under a key-like name be looked for everywhere, or is it a word that others say too?"""
    if len(value) < 8 or re.search(r"\s", value) or common(value) or "://" in value:
        return False
    if stands_for_another(value):
        return False
    return looks_random(value) or (_certain(words(name)) and not secret_name(value))


def _certain(of: list[str]) -> bool:
    if of[-1:] == ["key"]:
        return of[-2:-1] != [] and of[-2] in SECRET_KEYS
    return of not in (["token"], ["credentials"]) and not _UNCERTAIN & set(of[-1:])
