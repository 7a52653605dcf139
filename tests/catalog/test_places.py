"""Where ranks may go: links of one fabric, devices of one server, and what the judge says of it (PLN-1, PLN-2)."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lloom_gitops.catalog.installs import install_variants
from lloom_gitops.catalog.links import fabrics, linked_sets, unlinked
from lloom_gitops.catalog.memory import keys_of_nodes, limits
from lloom_gitops.checks.plan import judge
from lloom_gitops.model.desired import Alias, Desired, Pin
from lloom_gitops.model.inventory import Inventory, ObservedAlias, ObservedLane, ObservedNode
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.recipe import Recipe, Requirements
from lloom_gitops.model.words import LaneState, ModelKind, Residency
from lloom_gitops.planner import plan

from .pools import mac, pool, recipe, server, spark

SYNC, LAN = "nvidia-sync", "lan"
TP2 = ("--tensor-parallel-size", "2")


def checked(desired: Desired, inventory: Inventory) -> Plan:
    made = plan(desired, inventory)
    assert [f"{f.code} {f.pointer}: {f.message} {f.found}" for f in judge(desired, inventory, made)] == []
    return made


def placed(nodes: dict[str, ObservedNode], made: Recipe) -> dict[str, dict[str, int]]:
    """Memory by domain of each variant of a recipe."""
    desired, inventory = pool(nodes, {"r": made})
    keys = keys_of_nodes(limits(desired, inventory))
    return {name: found.memory for name, found in install_variants(desired, inventory, keys, tuple(nodes)).items()}


TRIO = {
    "a": spark(("b", SYNC), ("c", LAN)),
    "b": spark(("c", SYNC)),
    "c": spark(),
}


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ({"a": spark(("b", SYNC)), "b": spark(), "c": spark()}, ["m@a+b"]),
        ({"a": spark(), "b": spark(("a", SYNC))}, ["m@a+b"]),
        ({"a": spark(), "b": spark()}, []),
        (TRIO, ["m@a+b", "m@a+c", "m@b+c"]),
        ({"s": server(devices=3)}, ["m@s", "m@s#2", "m@s#3"]),
        ({"s": server(devices=8)}, ["m@s", "m@s#2", "m@s#3", "m@s#4"]),
        ({"a": spark(("b", SYNC)), "b": spark(), "s": server(devices=2)}, ["m@s", "m@a+b"]),
        ({"x": mac(), "s": server(devices=1)}, []),
    ],
    ids=[
        "a pair",
        "told by the other side",
        "no link",
        "any fabric",
        "any two of three",
        "neighbours of eight",
        "both",
        "one device",
    ],
)
def test_two_ranks(nodes: dict[str, ObservedNode], wanted: list[str]) -> None:
    assert list(placed(nodes, recipe(args=TP2))) == wanted


@pytest.mark.parametrize(
    ("fabric", "wanted"), [(LAN, []), (SYNC, ["m@a+b+c"])], ids=["each pair its own fabric", "one fabric for all"]
)
def test_three_ranks_need_one_fabric_among_all_of_them(fabric: str, wanted: list[str]) -> None:
    nodes = {**TRIO, "a": spark(("b", SYNC), ("c", fabric))}
    assert list(placed(nodes, recipe(needs=Requirements(nodes=3, memory_gb=Decimal(40))))) == wanted


def test_devices_and_host_memory_of_one_server() -> None:
    needs = Requirements(devices_per_node=2, memory_gb=Decimal("30.5"), host_memory_gb=Decimal(20))
    found = placed({"s": server()}, recipe(needs=needs))
    assert len(found) == 6
    assert found["m@s"] == {"s/device:cuda:0": 31_232, "s/device:cuda:1": 31_232, "s/system:0": 20_480}
    assert found["m@s#6"] == {"s/device:cuda:2": 31_232, "s/device:cuda:3": 31_232, "s/system:0": 20_480}
    assert placed({"x": mac()}, recipe(needs=Requirements(memory_gb=Decimal(30), host_memory_gb=Decimal(20)))) == {
        "m@x": {"x": 30_720}
    }


def test_a_second_recipe_of_a_model_is_a_way_of_its_own() -> None:
    big, small = (recipe(needs=Requirements(memory_gb=Decimal(size))) for size in (200, 40))
    alias = Alias(models=("m",), residency=Residency.ALWAYS)
    desired, inventory = pool({"n": spark()}, {"big": big, "small": small}, {"a": alias})
    made = checked(desired, inventory)
    assert [(step.id, step.recipe) for step in made.steps][:1] == [("install:m@n#2", "small")]


def resident(*devices: int) -> dict[str, ObservedLane]:
    """A lane that is always loaded on some devices of the server."""
    memory = {f"s/device:cuda:{number}": Decimal(40) for number in devices}
    return {
        "busy": ObservedLane(
            models=("other",),
            kind=ModelKind.CHAT,
            nodes=("s",),
            owner="s",
            state=LaneState.RUNNING,
            residency=Residency.ALWAYS,
            memory_gb=memory,
        )
    }


@pytest.mark.parametrize(
    ("busy", "wanted"),
    [((), (0, 1)), ((0, 1), (2, 3)), ((2,), (0, 1)), ((1, 2), (0, 3)), ((0, 1, 2), ())],
    ids=["free", "the first two are taken", "the third is taken", "the outer ones are left", "one is left"],
)
def test_a_plan_takes_the_devices_that_have_room(busy: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    made = recipe(needs=Requirements(devices_per_node=2, memory_gb=Decimal(30), host_memory_gb=Decimal(8)))
    alias = Alias(models=("m",), residency=Residency.ALWAYS)
    desired, inventory = pool({"s": server()}, {"r": made}, {"a": alias}, lanes=resident(*busy) if busy else {})
    desired = replace(desired, pins={"other@s": Pin(residency=Residency.ALWAYS)} if busy else {})
    planned = checked(desired, inventory)
    lanes = [planned.lanes[name or ""] for route in planned.routes.values() for name in route.lanes]
    taken = {f"s/device:cuda:{number}": Decimal(30) for number in wanted}
    assert [lane.memory_gb for lane in lanes] == ([{**taken, "s/system:0": Decimal(8)}] if wanted else [])
    short = {cause.short_gb for cause in planned.uncovered.get("a", ())}
    assert short == (set() if wanted else {Decimal("25.5")})  # 40 + 30 of 44.5


def test_the_host_can_be_what_is_short() -> None:
    made = recipe(needs=Requirements(memory_gb=Decimal(30), host_memory_gb=Decimal(240)))
    desired, inventory = pool({"s": server()}, {"r": made}, {"a": Alias(models=("m",))})
    planned = checked(desired, inventory)
    assert {(cause.domain, str(cause.short_gb)) for cause in planned.uncovered["a"]} == {("s/system:0", "12")}


def test_a_distributed_lane_without_a_common_fabric_can_not_be_started_again() -> None:
    lane = ObservedLane(
        models=("m",),
        kind=ModelKind.CHAT,
        nodes=("a", "b", "c"),
        owner="a",
        state=LaneState.STOPPED,
        memory_gb={node: Decimal(40) for node in "abc"},
    )
    alias = Alias(models=("m",), external=("cloud/m",))
    desired, inventory = pool(TRIO, {}, {"a": alias}, lanes={"l": lane})
    inventory = replace(inventory, aliases={"a": ObservedAlias(route=("m", "cloud/m"))})
    planned = checked(desired, inventory)
    assert planned.routes["a"].route == ("cloud/m",)
    (cause,) = planned.routes["a"].because
    assert (cause.reason, cause.node, cause.needs) == ("noLink", "a", "c")
    assert cause.has == LAN


@given(
    links=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.sampled_from((SYNC, LAN)))),
    size=st.integers(1, 4),
)
def test_linked_sets_are_all_and_only_those_of_one_fabric(links: list[tuple[str, str, str]], size: int) -> None:
    nodes = {name: spark(*((b, fabric) for a, b, fabric in links if a == name and b != name)) for name in "abcd"}
    desired, inventory = pool(nodes, {})
    found = list(linked_sets(desired, inventory, nodes, size))
    wanted = []
    for chosen in combinations("abcd", size):
        pairs = [fabrics(desired, inventory, *pair) for pair in combinations(chosen, 2)]
        if not pairs or frozenset.intersection(*pairs):
            wanted.append(chosen)
    assert found == wanted
    assert all(unlinked(desired, inventory, chosen) is None for chosen in found)
