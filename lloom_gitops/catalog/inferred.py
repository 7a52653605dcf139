"""Requirements of a recipe that it does not write down, read from its launch settings (CAT-2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from lloom_gitops.model.recipe import Launch, Recipe, RecipeProcess, processes

T = TypeVar("T")

_ARCH_SETTINGS = ("CUTE_DSL_ARCH", "TORCH_CUDA_ARCH_LIST")
_DEGREE_OPTIONS = ("--tensor-parallel-size", "-tp", "--tp-size", "--tp")
_SEQUENCES_SETTINGS = ("MAX_NUM_SEQS",)
_SEQUENCES_OPTIONS = ("--max-num-seqs",)


class Inferred(msgspec.Struct, Generic[T], frozen=True):
    """A requirement, and the launch setting it comes from (`NAME=value`, `--option value`); None: its own field."""

    value: T
    setting: str | None = None


def needed_archs(recipe: Recipe) -> Inferred[tuple[str, ...]]:
    """Compute archs of a recipe, of which a node needs one; empty: any will do.

    `sm_121a` builds run on `sm_121`; `12.1a` in a torch list is the same arch.
    """
    needs = recipe.spec.requirements
    if needs.compute_archs:
        return Inferred(needs.compute_archs)
    for name, value in _env(tuple(_launches(recipe)), _ARCH_SETTINGS):
        names = [part for part in value.replace(";", " ").replace(",", " ").split() if part]
        archs = tuple(dict.fromkeys(_arch(name) for name in names))
        if archs:
            return Inferred(archs, f"{name}={value}")
    return Inferred(())


def _arch(name: str) -> str:
    plain = name.removesuffix("+PTX").rstrip("af")
    return plain if plain.startswith("sm_") else "sm_" + plain.replace(".", "")


def tensor_parallel(recipe: Recipe) -> Inferred[int]:
    """Tensor parallel degree of a recipe: its own field, else nodes times devices a node, or more by a launch option.

    A launch option that says less than the recipe's own nodes and devices changes nothing: they may be split otherwise.
    """
    needs = recipe.spec.requirements
    written = needs.nodes * needs.devices_per_node
    if needs.tensor_parallel is not None:
        return Inferred(needs.tensor_parallel)
    for option, value in _args(tuple(_launches(recipe)), _DEGREE_OPTIONS):
        if value.isdigit() and int(value) > written:
            return Inferred(int(value), f"{option} {value}")
    return Inferred(written)


def sequences(process: RecipeProcess) -> Inferred[int | None]:
    """Sequences that a process serves at once: the fewest that its models say, else a launch setting; None: unknown."""
    said = [model.settings.max_sequences for model in process.models if model.settings.max_sequences]
    if said:
        return Inferred(min(said))
    for name, value in _env((process.launch,), _SEQUENCES_SETTINGS):
        if value.isdigit() and int(value):
            return Inferred(int(value), f"{name}={value}")
    for option, value in _args((process.launch,), _SEQUENCES_OPTIONS):
        if value.isdigit() and int(value):
            return Inferred(int(value), f"{option} {value}")
    return Inferred(None)


def _launches(recipe: Recipe) -> Iterator[Launch]:
    yield recipe.spec.launch
    for process in processes(recipe.spec):
        yield process.launch


def _env(launches: tuple[Launch, ...], names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        for launch in launches:
            if launch.env.get(name):
                yield name, launch.env[name]


def _args(launches: tuple[Launch, ...], options: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Values of options, as the next argument or after `=`."""
    for launch in launches:
        for place, argument in enumerate(launch.args):
            option, equals, value = argument.partition("=")
            if option in options:
                given = value if equals else next(iter(launch.args[place + 1 :]), "")
                yield option, given
