"""Requirements that a recipe leaves out, read from its launch settings, and never against what it writes (CAT-2)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloom_gitops.catalog.inferred import needed_archs, sequences, tensor_parallel
from lloom_gitops.catalog.installs import Shape, shapes
from lloom_gitops.checks import plan_recipes
from lloom_gitops.model.recipe import Recipe, Requirements, processes

from .pools import recipe

GB = Decimal(40)


@pytest.mark.parametrize(
    ("made", "archs", "setting"),
    [
        (recipe(env={"CUTE_DSL_ARCH": "sm_121a"}), ("sm_121",), "CUTE_DSL_ARCH=sm_121a"),
        (recipe(env={"TORCH_CUDA_ARCH_LIST": "12.1a"}), ("sm_121",), "TORCH_CUDA_ARCH_LIST=12.1a"),
        (
            recipe(env={"TORCH_CUDA_ARCH_LIST": "8.9;9.0+PTX 12.0f"}),
            ("sm_89", "sm_90", "sm_120"),
            "TORCH_CUDA_ARCH_LIST=8.9;9.0+PTX 12.0f",
        ),
        (
            recipe(needs=Requirements(compute_archs=("sm_100",)), env={"CUTE_DSL_ARCH": "sm_121a"}),
            ("sm_100",),
            None,
        ),
        (recipe(), (), None),
        (recipe(env={"CUTE_DSL_ARCH": ""}), (), None),
    ],
    ids=["cute", "torch", "torch, several", "its own field wins", "says nothing", "empty"],
)
def test_compute_archs(made: Recipe, archs: tuple[str, ...], setting: str | None) -> None:
    found = needed_archs(made)
    assert (found.value, found.setting) == (archs, setting)
    assert plan_recipes.compute_archs(made) == frozenset(archs)


@pytest.mark.parametrize(
    ("made", "degree", "setting", "placed"),
    [
        (recipe(), 1, None, [Shape(1, 1)]),
        (recipe(args=("--tensor-parallel-size", "2")), 2, "--tensor-parallel-size 2", [Shape(1, 2), Shape(2, 1)]),
        (recipe(args=("-tp=4",)), 4, "-tp 4", [Shape(1, 4), Shape(4, 1)]),
        (recipe(args=("--tensor-parallel-size", "1")), 1, None, [Shape(1, 1)]),
        (recipe(needs=Requirements(nodes=2), args=("-tp", "2")), 2, None, [Shape(2, 1)]),
        (recipe(needs=Requirements(nodes=2), args=("-tp", "4")), 4, "-tp 4", [Shape(2, 2)]),
        (recipe(needs=Requirements(devices_per_node=4), args=("-tp", "2")), 4, None, [Shape(1, 4)]),
        (recipe(needs=Requirements(tensor_parallel=2), args=("-tp", "8")), 2, None, [Shape(1, 2), Shape(2, 1)]),
        (recipe(args=("-tp", "${gpus}")), 1, None, [Shape(1, 1)]),
    ],
    ids=["one", "two", "after =", "one, written", "two nodes", "two nodes of two", "less", "own field", "a template"],
)
def test_tensor_parallel_degree_and_where_ranks_may_go(
    made: Recipe, degree: int, setting: str | None, placed: list[Shape]
) -> None:
    found = tensor_parallel(made)
    assert (found.value, found.setting) == (degree, setting)
    assert list(shapes(made)) == placed
    assert plan_recipes.ranks(made) == [(shape.nodes, shape.devices) for shape in placed]


@pytest.mark.parametrize(
    ("made", "at_once", "setting"),
    [
        (recipe(max_sequences=4, env={"MAX_NUM_SEQS": "9"}), 4, None),
        (recipe(env={"MAX_NUM_SEQS": "6"}), 6, "MAX_NUM_SEQS=6"),
        (recipe(args=("--max-num-seqs", "8")), 8, "--max-num-seqs 8"),
        (recipe(args=("--max-num-seqs",)), None, None),
        (recipe(), None, None),
    ],
    ids=["its own field wins", "environment", "option", "an option without a value", "unknown"],
)
def test_sequences(made: Recipe, at_once: int | None, setting: str | None) -> None:
    (process,) = processes(made.spec)
    found = sequences(process)
    assert (found.value, found.setting) == (at_once, setting)
    assert plan_recipes.sequences(process) == at_once


@given(
    nodes=st.integers(1, 4),
    devices=st.integers(1, 4),
    own=st.none() | st.integers(1, 9),
    option=st.none() | st.integers(0, 9),
)
def test_the_judge_reads_the_same_shapes(nodes: int, devices: int, own: int | None, option: int | None) -> None:
    needs = Requirements(nodes=nodes, devices_per_node=devices, tensor_parallel=own, memory_gb=GB)
    made = recipe(needs=needs, args=() if option is None else ("--tensor-parallel-size", str(option)))
    assert plan_recipes.ranks(made) == [(shape.nodes, shape.devices) for shape in shapes(made)]
