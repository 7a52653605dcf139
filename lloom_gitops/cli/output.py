"""Where commands write: stdout is data, stderr is everything else."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

FORMAT_VERSION = "1.0"
"""Of every JSON answer: a higher minor only adds fields (ignore what you don't know); refuse another major."""

# Legal in JSON, but a terminal acts on them: C1 controls, and what reorders or hides text.
_ACTIVE = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def put(text: str) -> None:
    """Data for stdout, ended with one newline."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def tell(text: str) -> None:
    """A message for the person at the terminal, on stderr."""
    sys.stderr.write(text if text.endswith("\n") else text + "\n")


def put_json(payload: Mapping[str, Any]) -> None:
    """One JSON document on stdout, with `formatVersion` first; `payload` holds JSON values and values of the model."""
    import msgspec

    encoder = msgspec.json.Encoder(decimal_format="number")
    text = msgspec.json.format(encoder.encode({"formatVersion": FORMAT_VERSION, **payload}), indent=2).decode()
    put(_ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
