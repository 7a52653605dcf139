"""Limits, budgets and footprints in exact MiB: the figures of documents.md, a Mac, and a server with four devices."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from lloom_gitops.catalog.memory import footprint, keys_of_nodes, limits, peak
from lloom_gitops.model.desired import Desired, Node
from lloom_gitops.model.inventory import Admission, Inventory, MemoryDomain, ObservedLane, ObservedNode
from lloom_gitops.model.pool import Memory, MemoryRuleOverride, Pool
from lloom_gitops.model.words import DomainKind, ModelKind

from .pools import mac, server, spark

OWN = Admission(reserve_gb=Decimal(8), max_utilization=Decimal("0.95"), guard_ceiling=Decimal("0.9"))
STRICT = Admission(reserve_gb=Decimal(16), max_utilization=Decimal("0.85"), guard_ceiling=Decimal("0.9"))
UNKNOWN = ObservedNode(memory_domains=(MemoryDomain(id="unified:0", kind=DomainKind.UNIFIED),))


def found(node: ObservedNode, declared: Node | None = None) -> dict[str, tuple[int | None, int | None]]:
    desired = Desired(name="p", pool=Pool(head="n"), nodes={"n": declared or Node()})
    return {key: (row.limit_mib, row.budget_mib) for key, row in limits(desired, Inventory(nodes={"n": node})).items()}


FOUR = {f"n/device:cuda:{number}": (46_080, 45_568) for number in range(4)}


@pytest.mark.parametrize(
    ("node", "declared", "wanted"),
    [
        pytest.param(replace(spark(), admission=OWN), None, {"n": (111_308, 109_260)}, id="a Spark of the fixture"),
        pytest.param(spark(), None, {"n": (111_308, 109_260)}, id="the pool's rule alone says the same"),
        # 96 x 0.9 = 86.4; 96 - max(8, 10) = 86
        pytest.param(mac(), None, {"n": (88_064, 86_016)}, id="a Mac"),
        # A device: 48 x 0.95 = 45.6; 48 - max(1, 3) = 45. The host: 256 x 0.9 = 230.4; 256 - max(8, 26) = 230.
        pytest.param(server(), None, {"n/system:0": (235_520, 233_472), **FOUR}, id="a server"),
        # The host's own rule, 256 x 0.85 = 217.6, says nothing about devices.
        pytest.param(
            server(admission=STRICT), None, {"n/system:0": (222_822, 220_774), **FOUR}, id="its own rule is the host's"
        ),
        pytest.param(
            server(foreign=Decimal("3.5")),
            None,
            {"n/system:0": (235_520, 233_472), **FOUR, "n/device:cuda:2": (42_496, 41_984)},
            id="used by others",
        ),
        pytest.param(
            mac(),
            Node(memory=Memory(unified=MemoryRuleOverride(reserve_gb=Decimal(32), headroom_gb=Decimal("0.3")))),
            {"n": (65_536, 65_228)},
            id="a node of its own rule",
        ),
        pytest.param(UNKNOWN, None, {"n": (None, None)}, id="unknown is never a number"),
        pytest.param(UNKNOWN, Node(assume_memory_gb=Decimal(96)), {"n": (88_064, 86_016)}, id="what people assume"),
        pytest.param(mac(1), None, {"n": (0, 0)}, id="never below nothing"),
    ],
)
def test_limit_and_budget(
    node: ObservedNode, declared: Node | None, wanted: dict[str, tuple[int | None, int | None]]
) -> None:
    assert found(node, declared) == wanted


def sized(**figures: str) -> ObservedLane:
    """A lane on node n: declared, measured, abort, peak (GiB)."""
    names = {"declared": "memory_gb", "measured": "measured_gb", "abort": "abort_gb", "peak": "load_peak_gb"}
    maps = {names[name]: {"n": Decimal(figure)} for name, figure in figures.items()}
    return ObservedLane(models=("m",), kind=ModelKind.CHAT, nodes=("n",), owner="n", **maps)


@pytest.mark.parametrize(
    ("lane", "declared", "measured"),
    [
        pytest.param(sized(declared="38"), 38_912, 38_912, id="declared alone"),
        # 31.2 + 2 GiB = 33,996.8 MiB
        pytest.param(sized(declared="38", measured="31.2"), 38_912, 33_997, id="measured less"),
        # 41.3 GiB = 42,291.2 MiB; with the margin 44,339.2
        pytest.param(sized(declared="38", measured="41.3"), 42_292, 44_340, id="measured more"),
        pytest.param(sized(measured="31.2"), 31_949, 33_997, id="measured alone"),
        # 52.1 GiB = 53,350.4 MiB
        pytest.param(sized(declared="38", abort="52.1"), 53_351, 53_351, id="an abort proved more"),
        pytest.param(sized(declared="38", measured="31.2", abort="52.1"), 53_351, 53_351, id="also over a measure"),
        pytest.param(sized(declared="38", abort="20"), 38_912, 38_912, id="an abort proved less"),
    ],
)
def test_footprint_by_both_bases(lane: ObservedLane, declared: int, measured: int) -> None:
    keys = {"n": ("n",)}
    rules = Pool(head="n")
    assert footprint(rules, lane, keys) == {"n": declared}
    by_measure = replace(rules, memory=replace(rules.memory, basis="measured"))
    assert footprint(by_measure, lane, keys) == {"n": measured}


@pytest.mark.parametrize(
    ("lane", "wanted"),
    [
        (sized(declared="38", peak="46"), 47_104),
        (sized(declared="38", peak="30"), 38_912),
        (sized(declared="38"), 38_912),
    ],
    ids=["more while it loads", "never less than loaded", "unknown: as loaded"],
)
def test_peak(lane: ObservedLane, wanted: int) -> None:
    keys = {"n": ("n",)}
    assert peak(lane, footprint(Pool(head="n"), lane, keys), keys) == {"n": wanted}


def test_a_lane_over_several_devices_and_one_that_does_not_say_which() -> None:
    inventory = Inventory(nodes={"n": server()})
    keys = keys_of_nodes(limits(Desired(name="p", pool=Pool(head="n"), nodes={"n": Node()}), inventory))
    spread = {"n/device:cuda:0": Decimal("21.5"), "n/device:cuda:1": Decimal("21.5"), "n/system:0": Decimal(12)}
    lane = ObservedLane(models=("m",), kind=ModelKind.CHAT, nodes=("n",), owner="n", memory_gb=spread)
    assert footprint(Pool(head="n"), lane, keys) == {
        "n/device:cuda:0": 22_016,
        "n/device:cuda:1": 22_016,
        "n/system:0": 12_288,
    }
    assert footprint(Pool(head="n"), sized(declared="38"), keys) == {"n/device:cuda:0": 38_912}
