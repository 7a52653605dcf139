"""Where the facts of a LLooM recipe (v1) stand, and how each is read: the table behind `lloom_recipe`.

A *field* ties a place in LLooM's document to the places of ours that may hold its value. Facts that LLooM writes in
several places, or not at all, are inferred. Pure; values are plain JSON data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..model.words import ModelKind

Path = tuple[str | int, ...]
Reader = Callable[[Any], Any]

MISSING: Any = object()


def get(document: Any, path: Path) -> Any:
    """The value at a path, or MISSING where any step of it is not there."""
    for step in path:
        here = isinstance(document, list) if isinstance(step, int) else isinstance(document, Mapping)
        if not here or (step >= len(document) if isinstance(step, int) else step not in document):
            return MISSING
        document = document[step]
    return document


def put(document: Any, path: Path, value: Any) -> None:
    """Set a value in place, adding objects on the way; nothing happens where something else stands in the way."""
    for step in path[:-1]:
        if isinstance(document, dict) and isinstance(step, str):
            document = document.setdefault(step, {})
        else:
            document = get(document, (step,))
    if isinstance(document, dict):
        document[path[-1]] = value


def text(value: Any) -> str | None:
    """A word that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A whole number of at least 1; 4.0 is one, as in JSON."""
    whole = amount(value)
    return whole if isinstance(whole, int) and whole >= 1 else None


def amount(value: Any) -> int | float | None:
    """A finite number of at least 0; a whole one is an int."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return int(value) if value == int(value) else value


def size(value: Any) -> int | float | None:
    """An amount above 0: LLooM's `memoryGb: 0` means that admission can't see the lane, so it is unknown."""
    return amount(value) or None


def words(value: Any) -> list[str] | None:
    """A list of different words; an empty list is one."""
    if not isinstance(value, list) or not all(text(word) for word in value) or len(set(value)) < len(value):
        return None
    return list(value)


def kind(value: Any) -> str | None:
    """A kind of model that the gateway knows."""
    return value if isinstance(value, str) and value in set(ModelKind) else None


def whole_seconds(value: Any) -> int | None:
    """LLooM's milliseconds as seconds, rounded up: a time limit is never cut short."""
    whole = count(value)
    return -(-whole // 1000) if whole else None


def strings(value: Any) -> list[str] | None:
    """Launch arguments: a list of strings, not empty."""
    return list(value) if isinstance(value, list) and value and all(isinstance(v, str) for v in value) else None


def string_map(value: Any) -> dict[str, str] | None:
    """Names to strings, not empty."""
    ok = isinstance(value, dict) and value and all(k and isinstance(v, str) for k, v in value.items())
    return dict(value) if ok else None


def benchmarks(value: Any) -> list[dict[str, Any]] | None:
    """A list of benchmarks in our own shape."""
    shape: dict[str, Reader] = {
        "hardware": text, "model": text, "ttftMs": count, "tokensPerSecond": size, "sequences": count, "source": text,
    }  # fmt: skip
    if not isinstance(value, list) or not value:
        return None
    for row in value:
        if not isinstance(row, dict) or "hardware" not in row or not set(row) <= set(shape):
            return None
        if any(shape[name](figure) is None for name, figure in row.items()):
            return None
    return [{name: shape[name](figure) for name, figure in row.items()} for row in value]


class Field(NamedTuple):
    """One fact: LLooM's place for it, our places (the first that holds a value counts), and how it is converted."""

    theirs: Path
    ours: tuple[Path, ...]
    read: Reader
    write: Reader = lambda value: value


def _document_fields() -> Iterator[Field]:
    req: Path = ("spec", "requirements")
    yield Field(("id",), (("metadata", "name"),), text)
    yield Field(("labels",), (("metadata", "labels"),), string_map)
    yield Field(("version",), (("spec", "version"),), count)
    yield Field(("backend", "id"), (("spec", "backend", "id"),), text)
    named: dict[str, Reader] = {
        "platforms": words, "accelerators": words, "computeArchs": words, "nodes": count, "devicesPerNode": count,
        "tensorParallel": count, "hostMemoryGb": amount, "loadPeakGb": size, "diskGb": amount, "commands": words,
    }  # fmt: skip
    for name, read in named.items():
        yield Field(("requirements", name), ((*req, name),), read)
    yield Field(("loadSeconds",), (("spec", "loadSeconds"),), size)
    yield Field(("benchmarks",), (("spec", "benchmarks"),), benchmarks)


def _model_fields(document: Any, index: int) -> Iterator[Field]:
    theirs: Path = ("models", index)
    ours: Path = ("spec", "models", index)
    for name, read in {"model": text, "gatewayModel": text, "kind": kind, "revision": text, "runtime": text}.items():
        yield Field((*theirs, name), ((*ours, name),), read)
    yield Field((*theirs, "settings", "contextWindow"), ((*ours, "settings", "contextWindow"),), count)
    both = get(document, (*theirs, "settings", "maxSequences")) is not MISSING
    slots = "maxSequences" if both else "maxActiveRequests"
    yield Field((*theirs, "settings", slots), ((*ours, "settings", "maxSequences"),), count)
    seconds = ((*ours, "settings", "startTimeoutSeconds"),)
    yield Field((*theirs, "settings", "startupTimeoutMs"), seconds, whole_seconds, lambda value: value * 1000)


def _process_fields(document: Any, index: int) -> Iterator[Field]:
    """Facts of the process behind a model, which LLooM may repeat for each member of a distributed lane."""
    theirs: Path = ("models", index, "settings")
    ours: Path = ("spec", "models", index)
    memory = ((*ours, "settings", "memoryGb"), ("spec", "requirements", "memoryGb"))
    yield Field((*theirs, "memoryGb"), memory, size)
    for at in _member_places(document, index):
        if isinstance(get(document, (*at, "resources")), dict):
            yield Field((*at, "resources", "memoryGb"), memory, size)
    places = runtime_places(document, index)
    image = ((*ours, "image"), ("spec", "backend", "image"))
    args = ((*ours, "launch", "args"), ("spec", "launch", "args"))
    env = ((*ours, "launch", "env"), ("spec", "launch", "env"))
    for at in places or [(*theirs, "runtime")]:
        yield Field((*at, "bootstrap", "image"), image, text)
        if isinstance(get(document, (*at, "bootstrap")), dict):
            yield Field((*at, "bootstrap", "command"), args, strings)
        yield Field((*at, "args"), args, strings)
        yield Field((*at, "env"), env, string_map)


def fields(document: Any) -> list[Field]:
    """All fields of a LLooM recipe. Which there are depends on its structure alone, never on a value that may move."""
    models = get(document, ("models",))
    found = list(_document_fields())
    for index in range(len(models) if isinstance(models, list) else 0):
        found += _model_fields(document, index)
        found += _process_fields(document, index)
    return found


def own_places(models: int) -> list[tuple[Path, ...]]:
    """Every place of ours that holds a fact of a recipe with so many models, each with those it falls back on."""
    bare: dict[str, Any] = {"models": [{} for _ in range(models)]}
    return list(dict.fromkeys(field.ours for field in fields(bare)))


def _member_places(document: Any, index: int) -> list[Path]:
    """Members of a distributed placement, the leader's first."""
    placement: Path = ("models", index, "settings", "placement")
    members = get(document, (*placement, "members"))
    if get(document, (*placement, "mode")) != "distributed" or not isinstance(members, list):
        return []
    places: list[Path] = [(*placement, "members", i) for i, member in enumerate(members) if isinstance(member, dict)]
    return sorted(places, key=lambda at: "leader" not in (get(document, (*at, s)) for s in ("nodeRole", "node")))


def runtime_places(document: Any, index: int) -> list[Path]:
    """Where launch settings of a model stand: its own runtime block, then those of its members."""
    places: list[Path] = [("models", index, "settings", "runtime")]
    places += [(*at, "runtimeSettings") for at in _member_places(document, index)]
    return [at for at in places if isinstance(get(document, at), dict)]


def _container_env(runtime: Any) -> dict[str, str]:
    """Environment given as `-e NAME=VALUE` to a container."""
    tokens = strings(get(runtime, ("bootstrap", "createArgs"))) or []
    if get(runtime, ("command",)) == "docker":
        tokens = tokens + (strings(get(runtime, ("args",))) or [])
    pairs = [after for token, after in itertools.pairwise(tokens) if token in ("-e", "--env")]
    pairs += [token.removeprefix("--env=") for token in tokens if token.startswith("--env=")]
    return {name: value for name, found, value in (pair.partition("=") for pair in pairs) if name and found}


def env_of(document: Any, index: int) -> dict[str, str] | None:
    """The launch environment of a model: the first runtime block that has one."""
    for at in runtime_places(document, index):
        runtime = get(document, at)
        env = _container_env(runtime) | (string_map(get(runtime, ("env",))) or {})
        if env:
            return env
    return None


def memory_of(document: Any, index: int) -> int | float | None:
    """The lane's estimate (GiB): of its largest member, else of the lane, else the recipe's resource estimate."""
    members = [size(get(document, (*at, "resources", "memoryGb"))) for at in _member_places(document, index)]
    known = [need for need in members if need is not None]
    if known:
        return max(known)
    lane = size(get(document, ("models", index, "settings", "memoryGb")))
    estimate = size(get(document, ("requirements", "resourceEstimate", "memoryGb")))
    return lane if lane is not None else estimate


def nodes_of(document: Any) -> int | None:
    """Distinct nodes that the members of a distributed lane stand on; None where no lane is distributed."""
    models = get(document, ("models",))
    most = 0
    for index in range(len(models)):
        nodes = {
            repr([get(document, (*at, "node")), get(document, (*at, "nodeRole"))] if _placed(document, at) else at)
            for at in _member_places(document, index)
        }
        most = max(most, len(nodes))
    return most or None


def _placed(document: Any, member: Path) -> bool:
    return any(text(get(document, (*member, name))) for name in ("node", "nodeRole"))


def revision_of(document: Any, index: int) -> str | None:
    """The revision that a setup step downloads a model at."""
    model = get(document, ("models", index, "model"))
    steps = get(document, ("setup", "steps"))
    for step in steps if isinstance(steps, list) else []:
        if get(step, ("action",)) == "download-model" and get(step, ("model",)) == model:
            return text(get(step, ("revision",)))
    return None


def kind_of(model: Mapping[str, Any]) -> str:
    """The kind of a model that names none, from what goes in and out and what it says it can do."""
    ins, outs, can = (set(_texts(model.get(name))) for name in ("input", "output", "capabilities"))
    if outs & {"embedding", "scores"} or can & {"embedding", "embeddings"}:
        return ModelKind.EMBEDDING.value
    if "video" in outs or any(word.startswith(("video-gen", "text-to-video")) for word in can):
        return ModelKind.VIDEO.value
    if "image" in outs:
        return ModelKind.IMAGE.value
    if "audio" in outs or "tts" in model:
        music = any("music" in word for word in can)
        return (ModelKind.AUDIO_GENERATION if music else ModelKind.AUDIO_SPEECH).value
    if "stt" in model or ("audio" in ins and any("transcri" in word for word in can)):
        return ModelKind.AUDIO_TRANSCRIPTION.value
    return ModelKind.CHAT.value


def _texts(value: Any) -> Sequence[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def benchmarks_of(document: Any) -> list[dict[str, Any]]:
    """What a recipe says it observed of its models. One stream is what LLooM's figures are of."""
    rows = []
    models = document["models"]
    machine = text(get(document, ("hardware", "testedMachine"))) or text(get(document, ("hardware", "family")))
    for index, model in enumerate(models):
        seen = model.get("observed")
        speed = size(get(seen, ("generationTokPerSec",))) or size(get(seen, ("decodeTokensPerSecond",)))
        first = size(get(seen, ("firstContentMs",))) or size(get(seen, ("timeToFirstTokenMs",)))
        if speed is None and first is None:
            continue
        row = {
            "hardware": "dgx-spark" if machine and "dgx spark" in machine.lower() else machine or "unknown",
            "model": (text(model.get("gatewayModel")) or model["model"]) if len(models) > 1 else None,
            "ttftMs": max(1, round(first)) if first is not None else None,
            "tokensPerSecond": speed,
            "source": f"models/{index}/observed of the LLooM recipe",
        }
        rows.append({name: value for name, value in row.items() if value is not None})
    return rows
