"""Secrets where a name belongs. A secret in git is burnt even if the next commit takes it out, so every text of every
document is looked at, also of documents that are wrong otherwise. The value itself is never part of a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lloom_gitops.codec.parsing import Parsed, join_pointer
from lloom_gitops.codec.wording import looks_secret
from lloom_gitops.model.errors import Finding

from .documents_codes import MEANINGS

Tokens = tuple[str | int, ...]

_SECRET_WORD = re.compile(r"(?i)(^|[_.-])(api_?key|key|token|secret|password|passwd|credentials?)$")
_USERINFO = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*@")
_PASSWORD = re.compile(r"://[^/?#\s@:]*:[^/?#\s@]+@")
_URL_FIELDS = ("endpoint", "healthUrl")
_QUERY = re.compile(r"(?i)[?&#](api[_-]?key|key|token|access[_-]?token|auth|secret|password|sig|signature)=[^&#\s]")
_FLAG = re.compile(r"(?i)^--?[a-z-]*(api-?key|token|secret|password)(=(?P<value>.+))?$")
# Long and mixed, as random bytes in hexadecimal or base64 are and no name of a variable is.
_RANDOM_NAME = re.compile(r"^(?=[A-Z_]*[0-9])(?:[0-9A-F]{24,}|[A-Z0-9]{32,})$")
# Refers to a secret that lies elsewhere: ${NAME}, {{ name }}, $NAME, <name>.
_REFERENCE = re.compile(r"^(\$\{?\w+|\{\{.*\}\}|<.*>|\$\(.*\))")


def secret_findings(parsed: Parsed) -> Iterator[Finding]:
    """What looks like a secret in one file, each with its place."""
    for tokens, text in _texts(parsed.value, ()):
        code = _code(tokens, text)
        if code is not None:
            yield _finding(parsed, code, tokens)
    for tokens, args in _lists(parsed.value, ()):
        for index, value in enumerate(args):
            if isinstance(value, str) and _is_flag_value(args, index):
                yield _finding(parsed, "secretInLaunch", (*tokens, index))


def _finding(parsed: Parsed, code: str, tokens: Tokens) -> Finding:
    message = "what looks like a secret stands here; it is not shown"
    return parsed.finding(code, join_pointer(*tokens), message, hint=MEANINGS[code].remedy)


def _code(tokens: Tokens, text: str) -> str | None:
    field = tokens[-1] if tokens else ""
    if field == "apiKeyEnv":
        return "secretForName" if looks_secret(text) or _RANDOM_NAME.match(text) else None
    if _PASSWORD.search(text) or _QUERY.search(text) or (field in _URL_FIELDS and _USERINFO.match(text)):
        return "secretInUrl"
    if looks_secret(text):
        return "secretInText"
    named = len(tokens) > 1 and tokens[-2] == "env" and isinstance(field, str) and _SECRET_WORD.search(field)
    return "secretInLaunch" if named and text and not _REFERENCE.match(text) else None


def _is_flag_value(args: list[Any], index: int) -> bool:
    """True for `--api-key=VALUE`, and for VALUE after `--api-key`."""
    own = _FLAG.match(args[index])
    if own is not None:
        value = own["value"]
        return value is not None and not _REFERENCE.match(value)
    before = args[index - 1] if index else None
    flag = _FLAG.match(before) if isinstance(before, str) else None
    follows = flag is not None and flag["value"] is None
    return follows and not args[index].startswith("-") and not _REFERENCE.match(args[index])


def _texts(value: Any, tokens: Tokens) -> Iterator[tuple[Tokens, str]]:
    """Every text of a value, keys too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if looks_secret(key):
                yield (*tokens, key), key
            yield from _texts(inner, (*tokens, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*tokens, index))
    elif isinstance(value, str):
        yield tokens, value


def _lists(value: Any, tokens: Tokens) -> Iterator[tuple[Tokens, list[Any]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lists(inner, (*tokens, key))
    elif isinstance(value, list):
        yield tokens, value
        for index, inner in enumerate(value):
            yield from _lists(inner, (*tokens, index))
