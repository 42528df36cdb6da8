"""The rules for what is a secret: by its name, the location of the name, and the value.

Names are split into words: `apiKey`, `API_KEY` and `x-api-key` all end in the words `api key`. The sections below:

    values        does a value look like a secret, or like a word in the place of one?
    fields        is a field, header or parameter with this name for a secret?
    JSON          is this string or number under such a name a secret?
    variables     is an environment variable known to be harmless? All others are secrets.

`harness.secrets.json_fields` applies the rules for JSON to names beside and around a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal


def word_set(text: str) -> frozenset[str]:
    """Return the set of the words of a text."""
    return frozenset(text.split())


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")


@lru_cache(maxsize=4096)
def words(name: str) -> tuple[str, ...]:
    """Split a name into words in lower case: `X-Amz-Signature`, `clientSecret`, `API_KEY_2`."""
    return tuple(word.lower() for word in _WORD.findall(name))


# ---------------------------------------------------------------- values

MIN_LENGTH: Final = 6
"""Shorter values are replaced under a secret name, but not searched for elsewhere."""

_DUMMIES: Final = word_set(
    "true false none null yes no on off default disabled enabled dummy fake test testing example sample "
    "placeholder changeme change-me password passwd secret secrets token api-key api_key apikey credentials "
    "username user admin required optional string integer number boolean object function undefined unknown "
    "anonymous unused empty not-needed not_needed notneeded no-key-required redacted [redacted] hidden masked "
    "localhost ollama lm-studio production development staging preview release latest master basic bearer include "
    "same-origin"
)
# Common words of agents: a run must stay readable if somebody's password is one of them.
_WORDS: Final = word_set(
    "account address answer billing cancel cancelled completed content customer english failed message messages "
    "orders passed please product question refund refunds request response result results return returns search "
    "server service status success support system weather welcome"
)
_COMMON: Final = _DUMMIES | _WORDS
_MASKED: Final = re.compile(r".*(?:\*\*\*|\.\.\.|…).*", re.DOTALL)
# The name of a variable, or a template for its value.
_NAMED: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\$?\{.*\}|<.*>|%.*%|\$[A-Z_]+", re.DOTALL)


def looks_random(value: str) -> bool:
    """True for a value that looks generated: long, without spaces, with letters and digits or in mixed case."""
    if len(value) < 8 or re.search(r"\s", value):
        return False
    letters = any(char.isalpha() for char in value)
    mixed = value.lower() != value and value.upper() != value
    return letters and (any(char.isdecimal() for char in value) or (mixed and len(value) >= 16))


def is_common(value: str) -> bool:
    """True for a common word or one repeated character, as people write in place of a secret."""
    return value.lower() in _COMMON or len(set(value)) <= 1


def is_reference(value: str) -> bool:
    """True for the name of a variable, a template to be filled in, and a masked secret."""
    return bool(_NAMED.fullmatch(value) or _MASKED.fullmatch(value))


# The values of these may be any word.
_UNCERTAIN: Final = word_set("auth hmac sig signature cookie cookies pass id sid")


def worth_learning(name: str, value: str) -> bool:
    """True if a value under a secret name can be replaced everywhere, since harmless text will not contain it."""
    if len(value) < MIN_LENGTH or is_common(value) or "://" in value or is_reference(value):
        return False
    if re.search(r"\s", value):
        return len(value) >= 12 and words(name)[-1:] in _PHRASES
    return looks_random(value) or (_is_certain(words(name)) and not secret_name(value))


_PHRASES: Final = frozenset(
    {(word,) for word in ("password", "passwd", "passphrase", "passcode", "pass", "pw", "pwd")}
)


def certain_name(name: str) -> bool:
    """True if a name means a secret also in prose: `password`, `api_key`, `token`; not `auth`, `pass` or `cookie`."""
    parts = words(name)
    return secret_field(name) and (parts == ("token",) or _is_certain(parts))


def _is_certain(parts: tuple[str, ...]) -> bool:
    if parts[-1:] == ("key",):
        return len(parts) > 1 and parts[-2] in SECRET_KEYS
    return parts not in (("token",), ("credentials",)) and not _UNCERTAIN & set(parts[-1:])


# ---------------------------------------------------------------- fields, headers, parameters

_SECRET: Final = word_set(
    "password passwd passphrase passcode pass pwd pw secret apikey token authorization credential credentials cookie "
    "cookies signature sig bearer jwt authtoken accesstoken refreshtoken idtoken sessiontoken bearertoken apitoken "
    "clientsecret apisecret privatekey secretkey accesskey passwords passphrases secrets apikeys sessionid sessid "
    "sid csrf xsrf otp totp webhook dsn"
)
_ENDINGS: Final = ("password", "passwd", "passphrase", "apikey", "authtoken", "sessionid", "sessid")
SECRET_KEYS: Final = word_set(
    "api access private secret auth signing encryption subscription account shared master service functions"
)
# Tokens of text, and positions in a list.
_HARMLESS_TOKENS: Final = word_set(
    "page next prev previous continuation cursor sync progress resume skip cancellation eos bos pad unk mask "
    "cls sep special stop start end first last image text current each per by position"
)
_HARMLESS_KEYS: Final = word_set("cache surrogate idempotency partition sort primary foreign public")
# Tokens that give access. `tokens` of another kind are a count.
_DOOR_TOKENS: Final = word_set(
    "access refresh id api auth bearer session security secret csrf xsrf login bot personal client device jwt"
)
SCHEMES: Final = word_set("basic bearer token apikey api-key")
"""Schemes of HTTP authentication that are followed by a secret."""
# The last words of names that describe a secret or refer to one.
ABOUT: Final = word_set(
    "mode type method url uri host port endpoint file path dir directory sock socket name names limit count ttl "
    "expiry expires expiration timeout length size backend provider enabled disabled parallelism leeway algorithm "
    "issuer audience scheme header prefix suffix version region scope scopes user username env keyring id ids "
    "manager store helper command cmd"
)


@lru_cache(maxsize=4096)
def secret_field(name: str) -> bool:
    """True if a field with this name holds a secret wherever it occurs: `api_key`, not `next_page_token`."""
    parts = words(name)
    if not parts:
        return False
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if last == "token":
        return before not in _HARMLESS_TOKENS
    if last == "signature":
        return before not in {"thought", "function", "method", "type"}
    if last in {"hash", "digest", "salt"}:
        return before in _SECRET and before != "signature"
    return (
        last in _SECRET
        or last.endswith(_ENDINGS)
        or (last in {"key", "keys"} and before in SECRET_KEYS)
        or (last == "tokens" and before in _DOOR_TOKENS)
        or parts[-2:] in (("session", "id"), ("secret", "id"), ("connection", "string"))
        or parts[-3:] == ("access", "key", "id")
    )


@lru_cache(maxsize=4096)
def secret_header(name: str) -> bool:
    """True if a header with this name holds a secret: `authorization`, `x-auth`, all names that end in `-key`."""
    parts = words(name)
    return secret_key(name) or (len(parts) > 1 and parts[-1] == "key" and parts[-2] not in _HARMLESS_KEYS)


def secret_parameter(name: str) -> bool:
    """True if a query or form parameter with this name holds a secret: a field, `key`, `auth`, `hmac` or `pin`."""
    return secret_field(name) or words(name) in (("key",), ("auth",), ("hmac",), ("pin",))


@lru_cache(maxsize=4096)
def secret_key(name: str) -> bool:
    """True if a key of a JSON object with this name may hold a secret: `secret_field`, `auth`, `pin`.

    `holds_secret` decides by the value.
    """
    return secret_field(name) or words(name)[-1:] in (("auth",), ("pin",))


def secret_name(name: str) -> bool:
    """True if this is the name of a secret in a parameter or header."""
    return secret_parameter(name) or secret_header(name)


LAST_WORDS: Final = _SECRET | word_set(
    "key keys tokens auth hmac pin session.?id secret.?id key.?id connection.?string hash digest salt"
)
"""Regular expressions for the last words of all names of secrets."""


# ---------------------------------------------------------------- strings and numbers of JSON

# Under these names numbers are secrets, too.
_NUMERIC: Final = word_set(
    "password passwd passphrase passcode pwd pw pin secret apikey credential credentials cookie authtoken otp "
    "accesstoken refreshtoken idtoken sessiontoken bearertoken apitoken clientsecret apisecret privatekey secretkey "
    "accesskey"
)
_SEVERAL: Final = word_set("passwords passphrases secrets apikeys keys tokens cookies credentials")
# Authentication methods, and their results.
_METHODS: Final = word_set(
    "oauth oauth2 oidc openid saml sso mtls tls ssl digest ntlm kerberos negotiate hmac jwt key api-key session "
    "cookie header query manual auto automatic ok success failed failure denied forbidden unauthorized authenticated"
)
_MODEL_TEXT: Final = word_set("logprob text")


_OWN_ID: Final = re.compile(r"thread-[0-9a-f]{16}")
"""The id of a run, which is generated from its seed. No server knows it, so that it is not a credential."""


def holds_secret(name: str, value: str, siblings: Mapping[object, object]) -> bool:
    """True if a string under a secret name in JSON is a secret, judged by its value and its siblings.

    A `token` beside a `logprob` is text of a model, and the `signature` of a model's thoughts must be sent back.
    """
    if not value:
        return False
    last = words(name)[-1]
    if last == "token":
        return "logprob" not in siblings
    if last in {"signature", "sig"}:
        thought = "thinking" in siblings or siblings.get("type") in ("thinking", "signature_delta")
        return not thought and not re.search(r"[\s(]", value)
    if last in {"id", "sessionid"}:
        return not _OWN_ID.fullmatch(value)
    if last in {"auth", "pass"}:
        return not is_common(value) and value.lower() not in _METHODS
    if last == "pin":
        return re.fullmatch(r"\d{4,12}", value) is not None
    return True


def holds_secrets(name: str, members: Mapping[object, object], siblings: Mapping[object, object]) -> bool:
    """True if all values in an object or a list under a secret name are secrets. `members` is empty for a list.

    False for the parts of a function's signature or of a model's token, and for things that are pinned to a board.
    """
    last = words(name)[-1]
    if last == "token":
        return not _MODEL_TEXT.intersection(map(str, members)) and "logprob" not in siblings
    return last not in {"signature", "sig", "pin", "pass"}


def secret_number(name: str, digits: str) -> bool:
    """True if a whole number under this name is a secret: a `pin`, a `password`; not a count of `api_keys`."""
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

Kind = Literal["secret", "likely", "weak", "harmless"]
"""The kind of an environment variable's value.

`secret`: by its name or the settings. `weak`: the same, but too short or too common to be searched for in texts.
`likely`: neither its name nor its value is known to be harmless. `harmless`: all others.
"""

# Harmless whatever their value, unless their name is one for secrets.
_HARMLESS_VARIABLES: Final = word_set(
    "LANG LANGUAGE LC_* TZ TERM TERM_* COLORTERM COLUMNS LINES SHELL SHLVL _ HOME PWD OLDPWD USER LOGNAME USERNAME "
    "HOSTNAME HOSTTYPE OSTYPE DISPLAY EDITOR VISUAL PAGER LESS* LS_COLORS LS_OPTIONS PS1 PROMPT* XDG_* DBUS_* "
    "DESKTOP_* DEBIAN_FRONTEND PATH PATHEXT PYTEST_* PYTHON* VIRTUAL_ENV* CONDA_* NO_PROXY no_proxy "
    "HIST* GTK_* QT_* XMODIFIERS WSL* COMPUTERNAME PROCESSOR_* GPG_AGENT_INFO HARNESS_*"
)
# Variables of CI, of package managers, and names of things: harmless unless their value looks random.
_LIKELY_HARMLESS: Final = word_set(
    "CI CI_* GITHUB_* GITLAB_* RUNNER_* BUILD_* BUILDKITE_* JENKINS_* CIRCLE_* TRAVIS_* npm_* "
    "*PROJECT *SERVICE *TEAM *COMPANY *CITY *COUNTRY *DEPARTMENT *CUSTOMER *ORGANIZATION *DATABASE PG* *_DB "
    "*DOMAIN *ROLE *PROTOCOL *DISTRO *chroot"
)
_HARMLESS_LAST: Final = ABOUT - word_set(
    "url uri endpoint id ids command cmd header prefix suffix"
) | word_set(
    "home arch os platform environment stage branch ref model models level format color lang locale zone timezone "
    "editor shell bundle workers jobs threads cache sha commit tag ref deployment"
)
# Variables that end in these hold a path, or a secret that somebody hid there.
_PATH_NAMES: Final = word_set("path paths dir directory file sock socket home")
_HARMLESS_VALUE: Final = re.compile(
    r"""[-+\d.,:/TZ\s_%]+                                  # numbers, dates, times, addresses, sizes
    | [A-Za-z]?[a-z]{0,7} | [A-Z]{0,8}                     # a short word
    | (?:[a-z]{2,3}(?:[_-][A-Za-z]{2,4})?|C|POSIX)(?:\.[A-Za-z0-9-]+)?(?:@\w+)?       # a locale
    | [a-z]{2}(?:-[a-z]+){1,2}-?\d[a-z]?                   # a region
    | [A-Z][a-z]+/[A-Z][A-Za-z_]+                          # a time zone
    | (?:[a-z][a-z-]*\.)+[a-z]{2,}(?::\d+)? | [a-z]+:\d+   # a host
    | [A-Za-z][A-Za-z.]*@[A-Za-z.-]+                       # an e-mail, a user of a host
    """,
    re.VERBOSE,
)
_PATH: Final = re.compile(r"(?:~|\.{0,2})/\S*|[A-Za-z]:\\.*")
_FILE: Final = re.compile(r".*\.(?:json|pem|key|crt|cer|sock|txt|toml|ya?ml|ini|env|cfg|conf)", re.IGNORECASE)
_COUNTS: Final = word_set("max min num number total budget window per rate average")
_FLAGS: Final = word_set("true false yes no on off 0 1 none null")


def kind_of_variable(
    name: str, value: str, named: tuple[str, ...] = (), public: tuple[str, ...] = ()
) -> Kind:
    """Return the kind of an environment variable's value.

    `named` are patterns for names of secrets, which may be as short as three characters; `public` are patterns for
    names of variables that are not secret.
    """
    if _matches(name, named):
        return "secret" if len(value) >= 3 else "weak"
    if _matches(name, public):
        return "harmless"
    if is_secret_variable(name, value):
        if _is_path(value):
            return "harmless"
        if value.lower() in _DUMMIES or len(set(value)) <= 1:
            return "harmless"
        too_short = len(value) < MIN_LENGTH or (value.isdecimal() and len(value) < 8)
        return "weak" if too_short or is_common(value) else "secret"
    return (
        "harmless" if len(value) < MIN_LENGTH or is_common(value) or _is_harmless(name, value) else "likely"
    )


def _matches(name: str, patterns: tuple[str, ...] | frozenset[str]) -> bool:
    return bool(patterns) and _pattern_of(patterns).match(name) is not None


@lru_cache(maxsize=64)
def _pattern_of(patterns: tuple[str, ...] | frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


def _is_harmless(name: str, value: str) -> bool:
    if _matches(name, _HARMLESS_VARIABLES) or _HARMLESS_VALUE.fullmatch(value):
        return True
    parts = words(name)
    if _is_path(value) or all(map(_is_path, value.split(":"))):
        return True
    if parts and parts[-1] in _HARMLESS_LAST and not any(map(secret_field, parts)):
        return parts[-1] not in _PATH_NAMES or not looks_random(value)
    return _matches(name, _LIKELY_HARMLESS) and not looks_random(value)


def is_secret_variable(
    name: str, value: str, named: tuple[str, ...] = (), public: tuple[str, ...] = ()
) -> bool:
    """True if a variable is a secret by its name, and its value is not a count or a flag."""
    if _matches(name, (*named, *public)):
        return _matches(name, named)
    parts, plain = words(name), value.strip()
    if not parts or not plain or parts == ("pwd",):
        return False
    if parts[-1] in {"pin", "passcode"}:
        return True
    if plain.lower() in _FLAGS:
        return secret_field(name) and parts[-1] not in {"auth", "pass", "pwd"}
    if plain.isdecimal() and (_COUNTS & set(parts) or parts[-1] == "tokens"):
        return False
    pairs = list(pairwise(parts))
    if ("access", "key") in pairs or parts[-2:] in (("secret", "id"), ("webhook", "url"), ("webhook", "uri")):
        return True
    if parts[-1] in ABOUT and parts[-2:] != ("session", "id"):
        return False
    if any(pair[1] == "token" and pair[0] in _HARMLESS_TOKENS for pair in pairs):
        return False
    if any(pair[1] in {"key", "keys"} and pair[0] in _HARMLESS_KEYS for pair in pairs):
        return False
    return bool(_VARIABLE & set(parts)) or any(map(secret_field, (*parts, name)))


_VARIABLE: Final = word_set("key keys auth pin pat sas webhook tokens")


def _is_path(value: str) -> bool:
    """True for the path of a file or folder, but not for a secret that begins like a path."""
    if not _PATH.fullmatch(value):
        return False
    if _FILE.fullmatch(value) or not any(map(looks_random, re.split(r"[/\\]", value))):
        return True
    try:
        return Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False
