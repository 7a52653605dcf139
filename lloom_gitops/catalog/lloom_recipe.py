"""LLooM recipes in and out, without loss (CAT-8).

A fact that our Recipe has a field for moves there; `spec.lloom` keeps the rest of LLooM's document as it is, in its own
order, with the word `$recipe` where a moved value stood. So `to_lloom(from_lloom(x)) == x`, types and order included,
and an edit of our fields shows in what `to_lloom` gives back. What LLooM writes in a form that is not ours (`-e NAME=…`
among a container's arguments, milliseconds that are no whole seconds) is read into our fields and left where it is.
Pure; both directions take and give plain JSON data and leave their argument alone.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import structs

from ..model.document import API_VERSION, Kind
from ..model.errors import DocumentError, Finding
from ..model.recipe import ModelSettings, RecipeModel, RecipeSpec, Requirements
from . import lloom_fields as lf
from .lloom_fields import MISSING, Field, Path, get, put

MOVED = "$recipe"
"""Stands in `spec.lloom` for a value that one of the recipe's own fields holds. A literal one gets one more `$`."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LITERAL = re.compile(r"\$+recipe")

# What a field that is left out means; a value equal to it and no value are the same.
_DEFAULTS: dict[Path, Any] = {
    ("spec", "version"): 1,
    ("spec", "requirements", "nodes"): 1,
    ("spec", "requirements", "devicesPerNode"): 1,
    ("spec", "requirements", "hostMemoryGb"): 0,
    **{("spec", "requirements", name): [] for name in ("platforms", "accelerators", "computeArchs", "commands")},
}


def from_lloom(recipe: Any) -> dict[str, Any]:
    """Turn a LLooM recipe (schema v1, as parsed JSON) into a Recipe document.

    Raises DocumentError with a Finding for each fault (`pointer` into the recipe) if it is none.
    """
    faults = _faults(recipe)
    if faults:
        raise DocumentError(code="lloomRecipe", message="this is no LLooM recipe", findings=faults)
    document = _extract(recipe)
    rest = copy.deepcopy(recipe)
    for field in lf.fields(recipe):
        value, own = get(rest, field.theirs), _own(document, field.ours)
        if value is MISSING:
            continue
        moved = own is not MISSING and _exactly(field.write(own), value)
        put(rest, field.theirs, MOVED if moved else _escaped(value))
    document["spec"] = _arranged(document["spec"], RecipeSpec) | {"lloom": rest}
    return document


def to_lloom(document: Any) -> dict[str, Any]:
    """Turn a Recipe document (plain data that its schema accepts) into a LLooM recipe.

    Our fields win over `spec.lloom`. Raises DocumentError where a field of ours can't be written into LLooM's document
    without contradicting what `spec.lloom` says (`pointer` into the document).
    """
    document = _plain(document)
    recipe = _skeleton(document)
    known = len(recipe["models"])
    if known > len(document["spec"]["models"]):
        message = f"spec.lloom has {known} models, spec.models only {len(document['spec']['models'])}"
        hint = "take the model out of spec.lloom.models too; both lists are in the same order"
        raise _refusal([Finding(code="recipeModels", message=message, pointer="/spec/models", hint=hint)])
    for field in lf.fields(recipe):
        _fill(recipe, document, field)
    faults = _faults(recipe, under="/spec/lloom")
    if faults:
        raise _refusal(faults)
    _write_changes(recipe, document)
    differences = list(_differences(document, _extract(recipe)))
    if differences:
        raise _refusal(differences)
    return recipe


def _refusal(findings: list[Finding]) -> DocumentError:
    return DocumentError(code="recipeExport", message="this recipe can't be given to LLooM", findings=findings)


def _faults(recipe: Any, under: str = "") -> list[Finding]:
    """What keeps a JSON value from being a LLooM recipe: the required fields, and those that name something."""
    checks: list[tuple[str, bool, str]] = [("", isinstance(recipe, dict), "an object")]
    if isinstance(recipe, dict):
        version, models = recipe.get("schemaVersion"), recipe.get("models")
        named = isinstance(recipe.get("id"), str) and NAME.fullmatch(recipe["id"])
        checks += [
            ("/schemaVersion", version == 1 and version is not True, "1, the schema version that this program knows"),
            ("/id", bool(named), "a letter or digit, then letters, digits, . _ -"),
            ("/name", isinstance(recipe.get("name"), str), "a string"),
            ("/backend/id", bool(lf.text(get(recipe, ("backend", "id")))), "a string that is not empty"),
            ("/models", isinstance(models, list), "a list"),
        ]
        for index, model in enumerate(models if isinstance(models, list) else []):
            found = lf.text(get(model, ("model",)))
            checks.append((f"/models/{index}/model", bool(found), "a string that is not empty"))
    return [*_keys(recipe, under)] + [
        Finding(code="lloomRecipe", message=f"a LLooM recipe has {wanted} here", pointer=under + at, wanted=wanted)
        for at, ok, wanted in checks
        if not ok
    ]


def _keys(value: Any, at: str) -> Iterator[Finding]:
    """Keys written out: a recipe lies in git. LLooM takes the name of an environment variable or a template instead."""
    if isinstance(value, dict):
        key = value.get("apiKey")
        if isinstance(key, str) and key and not key.startswith("${"):
            hint = "name an environment variable with apiKeyEnv instead"
            yield Finding(code="keyInDocument", message="a key stands here", pointer=f"{at}/apiKey", hint=hint)
        for name, inner in value.items():
            yield from _keys(inner, f"{at}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _keys(inner, f"{at}/{index}")


def _extract(recipe: Any) -> dict[str, Any]:
    """Our fields of a LLooM recipe: moved ones and inferred ones."""
    models: list[dict[str, Any]] = [{} for _ in recipe["models"]]
    spec: dict[str, Any] = {"version": None, "backend": {}, "requirements": {}, "models": models}
    document: dict[str, Any] = {
        "apiVersion": API_VERSION, "kind": Kind.RECIPE.value, "metadata": {"name": recipe["id"]}, "spec": spec,
    }  # fmt: skip
    for field in lf.fields(recipe):
        value = field.read(get(recipe, field.theirs))
        if value is not None and len(field.ours) == 1:
            put(document, field.ours[0], value)
    if spec["version"] is None:
        del spec["version"]
    for index, model in enumerate(recipe["models"]):
        _infer_model(recipe, index, model, models[index])
    nodes = lf.nodes_of(recipe)
    if nodes is not None:
        spec["requirements"].setdefault("nodes", nodes)
    _infer_processes(recipe, spec)
    observed = lf.benchmarks_of(recipe)
    if observed:
        spec.setdefault("benchmarks", observed)
    return document


def _infer_model(recipe: Any, index: int, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Fill in what a model of a LLooM recipe says in another way."""
    found = {
        "gatewayModel": ours["model"],
        "kind": lf.kind_of(theirs),
        "revision": lf.revision_of(recipe, index),
    }
    for name, value in found.items():
        if value is not None:
            ours.setdefault(name, value)


def _infer_processes(recipe: Any, spec: dict[str, Any]) -> None:
    """Memory, image and launch settings: the recipe's where all models agree, else each model's."""
    models = range(len(recipe["models"]))
    memory = [lf.memory_of(recipe, index) for index in models]
    largest = max((need for need in memory if need is not None), default=None)
    if largest is not None:
        spec["requirements"]["memoryGb"] = largest
    for index, need in enumerate(memory):
        if need not in (None, largest):
            spec["models"][index].setdefault("settings", {})["memoryGb"] = need
    parts = {
        ("image",): [_first(recipe, index, "image") for index in models],
        ("launch", "env"): [lf.env_of(recipe, index) for index in models],
        ("launch", "args"): [_first(recipe, index, "args") for index in models],
    }
    for path, values in parts.items():
        if values and values[0] is not None and all(value == values[0] for value in values):
            put(spec, ("backend", *path) if path == ("image",) else path, values[0])
            continue
        for index, value in enumerate(values):
            if value is not None:
                put(spec["models"][index], path, value)


def _arranged(value: dict[str, Any], shape: type[msgspec.Struct]) -> dict[str, Any]:
    """The same fields in the order in which our documents have them."""
    names = [field.encode_name for field in structs.fields(shape)]
    found = {name: value[name] for name in names if name in value}
    if "settings" in found:
        found["settings"] = _arranged(found["settings"], ModelSettings)
    if shape is RecipeSpec:
        found["requirements"] = _arranged(found["requirements"], Requirements)
        found["models"] = [_arranged(model, RecipeModel) for model in found["models"]]
    return found


def _first(recipe: Any, index: int, name: str) -> Any:
    """The image or the arguments of the first runtime block that gives them."""
    for at in lf.runtime_places(recipe, index):
        runtime = get(recipe, at)
        if name == "image":
            found: Any = lf.text(get(runtime, ("bootstrap", "image")))
        else:
            found = lf.strings(get(runtime, ("args",))) or lf.strings(get(runtime, ("bootstrap", "command")))
        if found is not None:
            return found
    return None


def _skeleton(document: Any) -> dict[str, Any]:
    """`spec.lloom`, with what a LLooM recipe must have besides (for recipes that never were LLooM's)."""
    spec = document["spec"]
    recipe: dict[str, Any] = copy.deepcopy(spec.get("lloom") or {})
    required: dict[str, Any] = {"schemaVersion": 1, "id": MOVED, "name": document["metadata"]["name"]}
    if not recipe:
        nodes = spec.get("requirements", {}).get("nodes", 1)
        # LLooM picks recipes for several nodes by this block, which its own schema leaves out.
        required |= {"version": MOVED, "requirements": {"cluster": {"nodes": nodes}} if nodes > 1 else {}}
    for name, value in (required | {"backend": {}, "models": []}).items():
        recipe.setdefault(name, value)
    models = recipe["models"]
    if not isinstance(models, list):
        finding = Finding(code="lloomRecipe", message="a LLooM recipe has a list here", pointer="/spec/lloom/models")
        raise _refusal([finding])
    for model in spec["models"][len(models) :]:
        role = model["gatewayModel"] if models else "default"
        entry: dict[str, Any] = {"role": role, "model": MOVED, "gatewayModel": MOVED, "kind": MOVED}
        if model.get("image") or spec["backend"].get("image"):
            entry["settings"] = {"runtime": {"adapter": "docker", "bootstrap": {"adapter": "docker", "image": MOVED}}}
        models.append(entry)
    if isinstance(recipe["backend"], dict):
        recipe["backend"].setdefault("id", MOVED)
    return recipe


def _fill(recipe: Any, document: Any, field: Field) -> None:
    """Put our value where `$recipe` stands; a value of ours that is gone takes the place with it."""
    value = get(recipe, field.theirs)
    if value != MOVED:
        if value is not MISSING:
            put(recipe, field.theirs, _unescaped(value))
        return
    own = _own(document, field.ours)
    if own is not MISSING:
        put(recipe, field.theirs, field.write(copy.deepcopy(own)))
    else:
        del get(recipe, field.theirs[:-1])[field.theirs[-1]]


def _write_changes(recipe: dict[str, Any], document: Any) -> None:
    """Write what our fields say otherwise than the LLooM recipe does, each into LLooM's place for it.

    Where LLooM repeats a fact (for each member of a lane), only the places that agree with what we read are changed;
    what it does not say yet is written once.
    """
    seen = _extract(recipe)
    added: set[tuple[Path, ...]] = set()
    for field in lf.fields(recipe):
        own, read = _own(document, field.ours), _own(seen, field.ours)
        if own is MISSING or own == read:
            continue
        value = get(recipe, field.theirs)
        new = read is MISSING or (value is MISSING and len(field.ours) == 1)
        if (new and field.ours not in added) or (not new and field.read(value) == read):
            added.add(field.ours)
            put(recipe, field.theirs, field.write(copy.deepcopy(own)))


def _differences(document: Any, seen: Any) -> Iterator[Finding]:
    """Values of ours that reading the LLooM recipe again does not give back."""
    for ours in lf.own_places(len(document["spec"]["models"])):
        own, found = _own(document, ours), _own(seen, ours)
        if own is MISSING or own == found:
            continue
        at = next((path for path in ours if get(document, path) not in (MISSING, None)), ours[0])
        said = "nothing" if found is MISSING else json.dumps(found, ensure_ascii=False)
        yield Finding(
            code="recipeLloomDiffers",
            message=f"this field and spec.lloom contradict each other: spec.lloom says {said}",
            pointer="/" + "/".join(str(step) for step in at),
            wanted=json.dumps(own, ensure_ascii=False),
            found=said,
            hint="LLooM has no place of its own for this value: change it in spec.lloom too",
        )


def _own(document: Any, ours: tuple[Path, ...]) -> Any:
    """The value of our first place that says something, else what leaving it out means, else MISSING."""
    for path in ours:
        value = get(document, path)
        if value is not MISSING and value not in (None, [], {}):
            return value
    return _DEFAULTS.get(ours[0], MISSING)


def _exactly(one: Any, other: Any) -> bool:
    """Equal as JSON text: 1, 1.0 and true differ, and so does the order of keys."""
    return one is not MISSING and other is not MISSING and json.dumps(one) == json.dumps(other)


def _escaped(value: Any) -> Any:
    return f"${value}" if isinstance(value, str) and _LITERAL.fullmatch(value) else value


def _unescaped(value: Any) -> Any:
    return value[1:] if isinstance(value, str) and _LITERAL.fullmatch(value) else value


def _plain(value: Any) -> Any:
    """Exact decimals (as the YAML reader gives them) as JSON numbers: with a point a float, without one an int."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    return value
