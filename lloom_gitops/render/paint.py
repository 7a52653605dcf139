"""Colour by meaning. Without colour every tone is the text itself, so meaning never rests on colour alone."""

from __future__ import annotations

from dataclasses import dataclass

_RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Paint:
    """Wraps text in ANSI colours where `color` is set. Texts must be cleaned before (`clean.visible`)."""

    color: bool = False

    def good(self, text: str) -> str:
        """Something starts or is well."""
        return self._in("32", text)

    def bad(self, text: str) -> str:
        """Something stops or fails."""
        return self._in("31", text)

    def warn(self, text: str) -> str:
        """Something people should look at."""
        return self._in("33", text)

    def strong(self, text: str) -> str:
        """A heading or a word that carries the line."""
        return self._in("1", text)

    def faint(self, text: str) -> str:
        """What only helps to read the rest."""
        return self._in("2", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.color and text else text
