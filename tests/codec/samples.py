"""One document a kind that uses every field of its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lloom_gitops.codec import parse
from lloom_gitops.model.document import Kind

FOLDER = Path(__file__).parent / "documents"


def _sample(kind: Kind) -> Any:
    path = FOLDER / f"{kind.value.lower()}.yaml"
    parsed = parse(path.read_bytes(), path.name)
    assert parsed.findings == ()
    return parsed.value


SAMPLES: dict[Kind, Any] = {kind: _sample(kind) for kind in Kind}
