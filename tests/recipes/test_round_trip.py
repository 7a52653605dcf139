"""A LLooM recipe comes back from our document equal: types, order of keys and unknown fields included (CAT-8)."""

from __future__ import annotations

import copy
import json
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lloom_gitops.catalog.lloom_recipe import from_lloom, to_lloom
from lloom_gitops.codec import accepts, dump, read_document, schema
from lloom_gitops.model.document import Kind

LLOOM = sorted((Path(__file__).parent / "lloom").glob("*.json"))


def as_decimals(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_decimals(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_decimals(inner) for inner in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else Decimal(repr(value))
    return value


def through_yaml(document: dict[str, Any]) -> dict[str, Any]:
    text = dump(as_decimals(document), keep_order=True)
    read, findings = read_document(Kind.RECIPE, text.encode(), "recipe.yaml")
    assert findings == ()
    assert read is not None
    return read.parsed.value


@pytest.mark.parametrize("file", LLOOM, ids=lambda file: file.stem)
class TestComposedRecipes:
    def test_comes_back_exactly(self, file: Path) -> None:
        recipe = json.loads(file.read_text())
        before = copy.deepcopy(recipe)
        document = from_lloom(recipe)
        assert json.dumps(to_lloom(document)) == json.dumps(recipe)
        assert recipe == before, "the argument is left alone"

    def test_comes_back_through_yaml(self, file: Path) -> None:
        recipe = json.loads(file.read_text())
        back = to_lloom(through_yaml(from_lloom(recipe)))
        assert back == recipe
        assert [*back] == [*recipe], "the order of keys is kept"

    def test_is_valid(self, file: Path) -> None:
        jsonschema.validate(as_decimals(from_lloom(json.loads(file.read_text()))), schema(Kind.RECIPE))


words = st.text(max_size=6) | st.sampled_from(["chat", "$recipe", "$$recipe", "off", "${port}", "é\u2028", "-e", "A=b"])
numbers = (
    st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0, 1, 1.0, 4])
)
scalars = st.none() | st.booleans() | numbers | words
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
)


def usual(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there, sometimes anything at all."""
    return st.one_of(good, good, good, json_values)


def thing(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object in any order of keys, with fields nobody heard of."""
    known = st.fixed_dictionaries(required, optional=optional)
    taken = {*required, *optional, "apiKey"}
    extra = st.dictionaries(words.filter(lambda name: name not in taken), json_values, max_size=1)
    return st.builds(shuffled, known, extra, st.randoms(use_true_random=False))


def shuffled(known: dict[str, Any], extra: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    entries = [*known.items(), *extra.items()]
    chance.shuffle(entries)
    return dict(entries)


texts = usual(st.sampled_from(["a", "b", "$recipe", ""]))
sizes = usual(st.sampled_from([0, 12, 12.0, 40.5, 96]))
counts = usual(st.sampled_from([1, 2, 4.0, 262144, 0]))
word_lists = usual(st.lists(st.sampled_from(["cuda", "gb10", "audio", "image", "embedding", "-e", "X=1"]), max_size=4))
maps = usual(st.dictionaries(st.sampled_from(["A", "B", ""]), st.sampled_from(["1", "${x}", ""]), max_size=2))
bootstraps = usual(thing({}, {"image": texts, "createArgs": word_lists, "command": word_lists}))
runtimes = usual(
    thing({}, {"command": usual(st.just("docker")), "args": word_lists, "env": maps, "bootstrap": bootstraps})
)
members = thing(
    {},
    {
        "nodeRole": usual(st.sampled_from(["leader", "worker"])),
        "node": texts,
        "resources": usual(thing({}, {"memoryGb": sizes})),
        "runtimeSettings": runtimes,
    },
)
placements = usual(
    thing({"mode": st.sampled_from(["distributed", "replicated"])}, {"members": usual(st.lists(members, max_size=3))})
)
model_settings = usual(
    thing(
        {},
        {
            "contextWindow": counts,
            "maxActiveRequests": counts,
            "maxSequences": counts,
            "startupTimeoutMs": usual(st.sampled_from([900000, 500, 90500.0])),
            "memoryGb": sizes,
            "placement": placements,
            "runtime": runtimes,
        },
    )
)
observations = usual(thing({}, {"generationTokPerSec": sizes, "firstContentMs": sizes}))
models = thing(
    {"model": st.sampled_from(["m/a", "m/b", "$recipe"])},
    {
        "role": texts,
        "gatewayModel": texts,
        "kind": usual(st.sampled_from(["chat", "image", "rerank"])),
        "revision": texts,
        "runtime": texts,
        "input": word_lists,
        "output": word_lists,
        "settings": model_settings,
        "observed": observations,
    },
)
steps = usual(st.lists(thing({"action": st.just("download-model")}, {"model": texts, "revision": texts}), max_size=2))
requirements = usual(
    thing(
        {},
        {
            **dict.fromkeys(["platforms", "accelerators", "commands", "computeArchs"], word_lists),
            **dict.fromkeys(["memoryGb", "diskGb", "loadPeakGb", "hostMemoryGb"], sizes),
            **dict.fromkeys(["nodes", "devicesPerNode", "tensorParallel"], counts),
            "resourceEstimate": usual(thing({}, {"memoryGb": sizes})),
        },
    )
)
benchmark_lists = usual(st.lists(thing({"hardware": texts}, {"ttftMs": counts, "tokensPerSecond": sizes}), max_size=2))
recipes = thing(
    {
        "schemaVersion": st.just(1),
        "id": st.sampled_from(["a", "A-1.b_c"]),
        "name": words,
        "backend": thing({"id": st.sampled_from(["vllm", "$recipe"])}, {}),
        "models": st.lists(models, max_size=3),
    },
    {
        "version": counts,
        "requirements": requirements,
        "setup": usual(thing({}, {"steps": steps})),
        "labels": maps,
        "loadSeconds": sizes,
        "benchmarks": benchmark_lists,
        "hardware": usual(thing({}, {"testedMachine": texts})),
    },
)


def yaml_keeps(value: Any) -> bool:
    """Numbers of sizes that no recipe has are refused by our YAML reader, and then the import says so."""
    if isinstance(value, dict):
        return all(yaml_keeps(inner) for inner in value.values())
    if isinstance(value, list):
        return all(yaml_keeps(inner) for inner in value)
    if not isinstance(value, float):
        return True
    return value == 0 or (1e-12 < abs(value) < 1e20 and math.isfinite(value))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(recipe=recipes)
def test_any_recipe_comes_back(recipe: dict[str, Any]) -> None:
    document = from_lloom(recipe)
    assert accepts(Kind.RECIPE, as_decimals(document))
    assert json.dumps(to_lloom(document)) == json.dumps(recipe)
    if yaml_keeps(recipe):
        assert to_lloom(through_yaml(document)) == recipe
