"""What the planner reads of an imported LLooM recipe, and where an edit of it goes on the way back."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.catalog.lloom_recipe import from_lloom, to_lloom
from lloom_gitops.codec import decode
from lloom_gitops.model.errors import DocumentError
from lloom_gitops.model.recipe import Launch, RecipeSpec, processes

LLOOM = Path(__file__).parent / "lloom"
ABSENT = object()


def composed(name: str) -> Any:
    return json.loads((LLOOM / f"{name}.json").read_text())


def at(value: Any, path: str) -> Any:
    for step in path.split("/"):
        if isinstance(value, list):
            value = value[int(step)]
        elif step in value:
            value = value[step]
        else:
            return ABSENT
    return value


def set_at(value: Any, path: str, to: Any) -> None:
    *way, last = path.split("/")
    target = at(value, "/".join(way)) if way else value
    target[int(last) if isinstance(target, list) else last] = to


FACTS: dict[str, tuple[str, str, Any]] = {
    "id is the name": ("process", "metadata/name", "mac-small-chat"),
    "version": ("process", "spec/version", 3),
    "no version": ("bare", "spec/version", ABSENT),
    "memory is the lane's, not the machine's": ("process", "spec/requirements/memoryGb", 12.5),
    "fractions stay": ("process", "spec/requirements/diskGb", 11.5),
    "revision from the download step": (
        "process",
        "spec/models/0/revision",
        "0123456789abcdef0123456789abcdef01234567",
    ),
    "a time limit is rounded up": ("process", "spec/models/0/settings/startTimeoutSeconds", 91),
    "slots": ("process", "spec/models/0/settings/maxSequences", 2),
    "launch arguments": ("process", "spec/launch/args", ["--port", "${port}", "--model", "${modelPath}"]),
    "launch environment": ("process", "spec/launch/env", {"HOME_DIR": "${home}"}),
    "benchmark": (
        "process",
        "spec/benchmarks",
        [
            {
                "hardware": "MacBook Pro M2 Max 96 GB",
                "ttftMs": 412,
                "tokensPerSecond": 26,
                "source": "models/0/observed of the LLooM recipe",
            }
        ],
    ),
    "nodes are distinct members": ("pair", "spec/requirements/nodes", 2),
    "memory of the largest member": ("pair", "spec/requirements/memoryGb", 96),
    "image of the members": ("pair", "spec/backend/image", "registry.example/vllm@sha256:aa"),
    "environment of a container": (
        "pair",
        "spec/launch/env",
        {"CUTE_DSL_ARCH": "sm_121a", "RANK": "${nodeRank}", "MAX_NUM_SEQS": "6"},
    ),
    "arguments are the leader's": ("pair", "spec/launch/args", ["serve", "--tensor-parallel-size", "2"]),
    "several processes: the largest": ("choice", "spec/requirements/memoryGb", 64),
    "several processes: the smaller one's own": ("choice", "spec/models/1/settings/memoryGb", 48),
    "memory 0 is unknown: the estimate": ("choice", "spec/models/2/settings/memoryGb", 30),
    "maxSequences goes before the gateway's slots": ("choice", "spec/models/0/settings/maxSequences", 8),
    "images differ": ("choice", "spec/models/1/image", "registry.example/vllm:v2"),
    "an environment that one process lacks": ("choice", "spec/models/1/launch/env", {"CUTE_DSL_ARCH": "sm_121a"}),
    "no gateway id: the artifact": ("choice", "spec/models/1/gatewayModel", "example/dense-27b"),
    "a benchmark names its model": ("choice", "spec/benchmarks/0/model", "moe-35b"),
    "a kind that we don't know": ("choice", "spec/models/2/kind", "embedding"),
    "compute archs": ("speech", "spec/requirements/computeArchs", ["sm_121"]),
    "tensor parallel": ("speech", "spec/requirements/tensorParallel", 1),
    "kind: speech": ("speech", "spec/models/0/kind", "audio_speech"),
    "kind: transcription": ("speech", "spec/models/1/kind", "audio_transcription"),
    "kind: music": ("speech", "spec/models/2/kind", "audio_generation"),
    "environment of a docker command": ("speech", "spec/launch/env", {"DEVICE": "cuda"}),
    "kind: embedding": ("bare", "spec/models/0/kind", "embedding"),
    "nothing known of memory": ("bare", "spec/requirements", {}),
    "moved values leave a word": ("pair", "spec/lloom/models/0/settings/contextWindow", "$recipe"),
    "others stay": ("pair", "spec/lloom/requirements/memoryGb", 120),
    "a literal of that word is escaped only where it could be one": (
        "process",
        "spec/lloom/x-future/nested/8",
        "$recipe",
    ),
}


@pytest.mark.parametrize(("name", "path", "wanted"), FACTS.values(), ids=FACTS)
def test_reads(name: str, path: str, wanted: Any) -> None:
    assert at(from_lloom(composed(name)), path) == wanted


EDITS: dict[str, tuple[str, str, Any, str, Any]] = {
    "context": ("pair", "spec/models/0/settings/contextWindow", 65536, "models/0/settings/contextWindow", 65536),
    "memory goes to the lane": ("process", "spec/requirements/memoryGb", 14, "models/0/settings/memoryGb", 14),
    "memory of one process": ("choice", "spec/models/1/settings/memoryGb", 50, "models/1/settings/memoryGb", 50),
    "slots where the gateway counts them": (
        "process",
        "spec/models/0/settings/maxSequences",
        4,
        "models/0/settings/maxActiveRequests",
        4,
    ),
    "a time limit": (
        "process",
        "spec/models/0/settings/startTimeoutSeconds",
        120,
        "models/0/settings/startupTimeoutMs",
        120000,
    ),
    "an inferred kind": ("bare", "spec/models/0/kind", "chat", "models/0/kind", "chat"),
    "a field LLooM's schema lacks": ("pair", "spec/requirements/loadPeakGb", 104, "requirements/loadPeakGb", 104),
    "image of all members": (
        "pair",
        "spec/backend/image",
        "registry.example/vllm@sha256:bb",
        "models/0/settings/placement/members/0/runtimeSettings/bootstrap/image",
        "registry.example/vllm@sha256:bb",
    ),
    "arguments of the leader only": (
        "pair",
        "spec/launch/args",
        ["serve"],
        "models/0/settings/placement/members/0/runtimeSettings/bootstrap/command",
        ["serve", "--node-rank", "1"],
    ),
    "memory of a smaller member too": (
        "pair",
        "spec/requirements/memoryGb",
        90,
        "models/0/settings/placement/members/0/resources/memoryGb",
        90,
    ),
    "nothing to write it over": ("bare", "spec/requirements/memoryGb", 4, "models/0/settings/memoryGb", 4),
    "a version for one that had none": ("bare", "spec/version", 2, "version", 2),
}


@pytest.mark.parametrize(("name", "path", "value", "theirs", "wanted"), EDITS.values(), ids=EDITS)
def test_edit_shows_in_the_export(name: str, path: str, value: Any, theirs: str, wanted: Any) -> None:
    document = from_lloom(composed(name))
    set_at(document, path, value)
    assert at(to_lloom(document), theirs) == wanted


def test_a_removed_field_is_removed() -> None:
    document = from_lloom(composed("process"))
    del document["spec"]["requirements"]["diskGb"]
    assert "diskGb" not in to_lloom(document)["requirements"]


def test_defaults_left_out_mean_the_same() -> None:
    document = from_lloom(composed("archived"))
    del document["spec"]["version"]
    assert to_lloom(document) == composed("archived")


REFUSED: dict[str, tuple[str, str, Any, str]] = {
    "a container's environment": ("pair", "spec/launch/env", {"CUTE_DSL_ARCH": "sm_120a"}, "/spec/launch/env"),
    "fewer models": ("speech", "spec/models", [{"model": "m", "gatewayModel": "m", "kind": "chat"}], "/spec/models"),
    "a broken rest": ("bare", "spec/lloom/backend", "vllm", "/spec/lloom/backend/id"),
    "models that are no list": ("bare", "spec/lloom/models", {}, "/spec/lloom/models"),
}


@pytest.mark.parametrize(("name", "path", "value", "pointer"), REFUSED.values(), ids=REFUSED)
def test_contradictions_are_refused(name: str, path: str, value: Any, pointer: str) -> None:
    document = from_lloom(composed(name))
    set_at(document, path, value)
    with pytest.raises(DocumentError) as refused:
        to_lloom(document)
    assert [finding.pointer for finding in refused.value.findings] == [pointer]


FAULTS: dict[str, tuple[str, Any, str]] = {
    "another schema version": ("schemaVersion", 2, "/schemaVersion"),
    "true is no version": ("schemaVersion", True, "/schemaVersion"),
    "an id with a slash": ("id", "../x", "/id"),
    "no name": ("name", None, "/name"),
    "no backend": ("backend", {}, "/backend/id"),
    "models are no list": ("models", {}, "/models"),
    "a model without artifact": ("models", [{"role": "default"}], "/models/0/model"),
    "a key": ("x-host", [{"apiKey": "sk-123"}], "/x-host/0/apiKey"),
}


@pytest.mark.parametrize(("field", "value", "pointer"), FAULTS.values(), ids=FAULTS)
def test_faults(field: str, value: Any, pointer: str) -> None:
    with pytest.raises(DocumentError) as refused:
        from_lloom(composed("bare") | {field: value})
    assert [finding.pointer for finding in refused.value.findings] == [pointer]


def test_not_even_an_object() -> None:
    with pytest.raises(DocumentError):
        from_lloom([])


def spec_of(name: str) -> RecipeSpec:
    spec = from_lloom(composed(name))["spec"]
    del spec["lloom"]
    return decode(json.loads(json.dumps(spec), parse_float=Decimal), RecipeSpec)


def test_models_with_one_runtime_share_a_process() -> None:
    (process,) = processes(spec_of("speech"))
    assert [model.gateway_model for model in process.models] == ["tts", "stt", "music"]
    assert process.memory_gb == 6


def test_each_process_has_its_own_facts() -> None:
    found = processes(spec_of("choice"))
    assert [process.memory_gb for process in found] == [64, 48, 30]
    assert [process.image for process in found] == ["registry.example/vllm:v1", "registry.example/vllm:v2", None]
    assert found[0].launch == Launch(env={"CUTE_DSL_ARCH": "sm_121a"}, args=("${modelId}", "--max-num-seqs", "8"))


def test_unknown_memory_stays_unknown() -> None:
    assert processes(spec_of("bare"))[0].memory_gb is None
