"""Where a gateway's key is kept: an environment variable or a file of this machine, named by the Node document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lloom_gitops.model.desired import Node


def gateway_key(node: Node, environ: Mapping[str, str]) -> str | None:
    """The admin key of a node's gateway; None where none is named, or what is named is not there or empty."""
    if node.api_key_env is not None:
        return environ.get(node.api_key_env, "").strip() or None
    if node.api_key_file is None:
        return None
    try:
        return Path(node.api_key_file).expanduser().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
