"""The recipes of this repository: valid, with the published facts, and fit to be given to LLooM."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from lloom_gitops.catalog.lloom_recipe import from_lloom, to_lloom
from lloom_gitops.codec import decode, load_document, parse
from lloom_gitops.model.document import Kind
from lloom_gitops.model.recipe import RecipeSpec

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "recipes").glob("*.yaml"))


def spec_of(name: str) -> RecipeSpec:
    return load_document(Kind.RECIPE, (ROOT / "recipes" / f"{name}.yaml").read_bytes(), name).spec


def test_there_are_enough() -> None:
    assert len(FILES) >= 22


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
class TestEach:
    def test_is_valid_and_named_like_its_file(self, file: Path) -> None:
        document = load_document(Kind.RECIPE, file.read_bytes(), file.name)
        assert document.metadata.name == file.stem
        first = file.read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=../schemas/recipe.v1.schema.json"

    def test_benchmarks_name_models_of_the_recipe(self, file: Path) -> None:
        spec = spec_of(file.stem)
        ids = {model.gateway_model for model in spec.models}
        assert {row.model for row in spec.benchmarks} <= ids | {None}

    def test_survives_the_way_through_lloom(self, file: Path) -> None:
        document = parse(file.read_bytes(), file.name).value
        back = from_lloom(to_lloom(document))["spec"]
        del back["lloom"]
        assert decode(exact(back), RecipeSpec) == spec_of(file.stem)


def exact(value: object) -> object:
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return Decimal(repr(value)) if isinstance(value, float) else value


FACTS: dict[str, tuple[int, int, int | None, int | None, str]] = {
    # nodes, GiB of a node, context window, slots, model
    "linux-nvidia-dgx-spark-2x-qwen38-flash-next-vllm": (2, 110, 262144, 4, "qwen3.8-flash-next"),
    "linux-nvidia-dgx-spark-2x-qwen38-flash-next-sglang": (2, 96, 262144, 6, "qwen3.8-flash-next"),
    "linux-nvidia-dgx-spark-2x-deepseek-v4-flash-mia-vllm": (2, 96, 262144, 6, "deepseek-v4-flash-0731"),
    "linux-nvidia-gb10-qwen38-27b-nvfp4-vllm": (1, 40, 262144, 4, "qwen3.8-27b"),
    "linux-nvidia-qwen3-embedding-4b-vllm": (1, 12, 8192, 8, "qwen3-embedding-4b"),
    "linux-nvidia-spark-audio-qwen3-tts-1-7b-customvoice": (1, 10, None, 1, "qwen3-tts-1.7b"),
    "linux-nvidia-spark-audio-whisper-large-v3-turbo": (1, 6, None, 1, "whisper-large-v3-turbo"),
    "linux-nvidia-qwen-image-2-1-diffusers": (1, 70, None, 1, "qwen-image-2.1"),
    "linux-nvidia-comfyui-ace-step-1-5-xl-sft": (1, 35, None, 1, "ace-step-1.5-xl"),
    "linux-nvidia-comfyui-ltx-2-5": (1, 70, None, 1, "ltx-2.5"),
    "apple-silicon-qwen3-embedding-4b-ollama": (1, 4, 40960, 8, "mac/qwen3-embedding-4b"),
}


@pytest.mark.parametrize(("name", "facts"), FACTS.items(), ids=FACTS)
def test_published_facts(name: str, facts: tuple[int, int, int | None, int | None, str]) -> None:
    spec = spec_of(name)
    model = spec.models[0]
    settings = model.settings
    found = (spec.requirements.nodes, spec.requirements.memory_gb, settings.context_window, settings.max_sequences)
    assert (*found, model.gateway_model) == facts


def test_the_fleet_of_this_repository_has_a_recipe_for_each_model() -> None:
    aliases = parse((ROOT / "fleet" / "aliases.yaml").read_bytes(), "aliases.yaml").value["spec"]["aliases"]
    wanted = {model for alias in aliases.values() for model in alias["models"]}
    served = {model.gateway_model for file in FILES for model in spec_of(file.stem).models}
    assert wanted <= served
