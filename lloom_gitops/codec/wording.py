"""Words of findings: short values, and the known word that a wrong one is close to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_SHORT = 60


# Keys by the prefixes that their issuers give them, tokens in a header, JSON Web Tokens, private keys.
_SECRET = re.compile(
    r"\b(sk-|sk_live_|rk_live_|pk_live_|ghp_|gho_|ghs_|ghu_|github_pat_|glpat-|hf_|xox[abprs]-|AKIA|AIza|nvapi-|gsk_)"
    r"[A-Za-z0-9_-]{8,}|\b[Bb]earer\s+[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\."
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)


def looks_secret(text: str) -> bool:
    """True where a text holds what looks like a key, a token or a private key; it must not be printed."""
    return _SECRET.search(text) is not None


# What follows a word for a secret, where it is no plain word: `wrong key 9f2c…`, `token=…`, `"api_key": "…"`.
_NAMED_SECRET = re.compile(
    r"""(?ix) \b (?:(?:api|access|secret|admin|auth)[-_ ]?)? (?:key|token|secret|password|passwd|authorization) \b
        ["']? \s* [:=]? \s* ["']? (?:basic \s)? (?=\S*\d) (\S{8,})"""
)


def without_secrets(text: str) -> str:
    """A text of others, with `…` for what looks like a key, a token or a private key."""
    hidden = _SECRET.sub("…", text)
    return _NAMED_SECRET.sub(lambda found: found[0].removesuffix(found[1]) + "…", hidden)


def short(value: Any) -> str:
    """A value as one short line for a message; control characters are shown as escapes, secrets not at all."""
    text = "nothing" if value is None else str(value)
    if looks_secret(text):
        return "(not shown)"
    if isinstance(value, bool):
        text = str(value).lower()
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[: _SHORT + 1])
    return text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."


def nearest(word: Any, words: Iterable[str]) -> str | None:
    """A hint that names the known word closest to a wrong one, or None if none is close."""
    import difflib

    close = difflib.get_close_matches(str(word)[:_SHORT], sorted(words), n=1)
    return f"did you mean {close[0]}?" if close else None
