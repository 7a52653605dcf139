"""The cases below this folder. Each is a small fleet, its inventory, and what comes of them.

case.yaml                       what it shows: `says`, `rows`, and perhaps `explain`, `request`, `base`, `inventory`
fleet/ recipes/                 the documents; with `base`, only those that differ from another case's
fleet/observed/inventory.yaml   what was seen; with `base`, `inventory` in case.yaml says what differs (merge patch)
plan.yaml diff.txt explain.txt  what the program says of it: `make golden` rewrites these, and nothing else does
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lloom_gitops.codec import decode, encode, load_desired, load_document, parse
from lloom_gitops.codec.documents import Metadata, dump_document, plan_id
from lloom_gitops.model.desired import Desired, Pin
from lloom_gitops.model.document import Kind
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.planner import PlanRequest, effective, plan
from lloom_gitops.render.explain_text import explain_text
from lloom_gitops.render.explained import explained
from lloom_gitops.render.page import Page
from lloom_gitops.render.plan_text import plan_text

FOLDER = Path(__file__).parent
CASES = tuple(sorted(path.parent.name for path in FOLDER.glob("*/case.yaml")))
INVENTORY = "fleet/observed/inventory.yaml"
WRITTEN = ("plan.yaml", "diff.txt", "explain.txt")


@dataclass(frozen=True)
class Case:
    """One case, read and planned. `asked` is the desired state with the request's what-if flags merged in."""

    name: str
    words: dict[str, Any]
    files: dict[str, bytes]
    desired: Desired
    asked: Desired
    inventory: Inventory
    made: Plan

    @property
    def rows(self) -> tuple[str, ...]:
        """Rows of the requirements that it shows, and of planning.md."""
        return tuple(self.words.get("rows", ()))

    def texts(self) -> dict[str, str]:
        """What is written down of it, by file name."""
        texts = {
            "plan.yaml": dump_document(Kind.PLAN, Metadata(name="plan", id=plan_id(self.made)), self.made),
            "diff.txt": plan_text(self.made, Page(width=100)),
        }
        names = self.words.get("explain", ())
        if names:
            subjects = [subject for name in names for subject in explained(self.made, name)]
            texts["explain.txt"] = explain_text(self.made, subjects, Page(width=100))
        return texts


@cache
def load(name: str) -> Case:
    """A case by its folder's name. Fails on documents that can't be used."""
    words = _words(name)
    files = documents(name)
    loaded = load_desired({path: data for path, data in files.items() if path != INVENTORY})
    assert loaded.desired is not None, "\n".join(f"{f.place}: {f.message} ({f.hint})" for f in loaded.findings)
    inventory = _inventory(files, words)
    request = _request(words.get("request", {}))
    return Case(
        name=name,
        words=words,
        files=files,
        desired=loaded.desired,
        asked=effective(loaded.desired, request),
        inventory=inventory,
        made=plan(loaded.desired, inventory, request),
    )


def documents(name: str) -> dict[str, bytes]:
    """The documents of a case by path, over those of its base."""
    base = _words(name).get("base")
    files = documents(base) if base else {}
    here = (path for folder in ("fleet", "recipes") for path in (FOLDER / name / folder).rglob("*.yaml"))
    return files | {path.relative_to(FOLDER / name).as_posix(): path.read_bytes() for path in here}


def _words(name: str) -> dict[str, Any]:
    parsed = parse((FOLDER / name / "case.yaml").read_bytes(), f"{name}/case.yaml")
    assert parsed.findings == (), parsed.findings
    words: dict[str, Any] = parsed.value
    assert words.keys() <= {"says", "rows", "base", "inventory", "request", "explain"}, words.keys()
    return words


def _inventory(files: dict[str, bytes], words: dict[str, Any]) -> Inventory:
    seen: Inventory = load_document(Kind.INVENTORY, files[INVENTORY], INVENTORY).spec
    patched: Inventory = decode(merged(encode(seen), words.get("inventory", {})), Inventory)
    return patched


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch: maps are merged, null takes a key away, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _request(words: dict[str, Any]) -> PlanRequest:
    pins = {key: decode(pin or {}, Pin) for key, pin in words.get("pins", {}).items()}
    return PlanRequest(profile=words.get("profile"), cordons=tuple(words.get("cordons", ())), pins=pins)
