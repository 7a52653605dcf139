"""PLN-10: every row of the three-Spark acceptance case, exactly."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from lloom_gitops.checks.plan import judge
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.words import Feature, LaneState, Liveness, NodeState, Residency, Seen
from lloom_gitops.planner import PlanRequest, effective, plan
from tests.pools import three_spark

PAIR = ("spark-node-01", "spark-node-02")
CLOUD = "cloud/openrouter/q38fn"
STANDALONE = ("qwen3.8-27b", CLOUD)
PAIR_ROUTE = ("qwen3.8-flash-next", "qwen3.8-27b", CLOUD)
TO_STANDALONE = ["start:qwen38-27b-03", "route:cognition", "route:cognition-deep"]
PAIR_LEAVES = ["drain:qwen38-pair", "stop:qwen38-pair"]


@pytest.fixture
def fleet() -> tuple[Desired, Inventory]:
    return three_spark()


def cordoned(desired: Desired, *names: str) -> Desired:
    nodes = {n: replace(node, state=NodeState.CORDON) if n in names else node for n, node in desired.nodes.items()}
    return replace(desired, nodes=nodes)


def nodes_with(inventory: Inventory, names: tuple[str, ...], **fields: object) -> Inventory:
    nodes = {n: replace(node, **fields) if n in names else node for n, node in inventory.nodes.items()}
    return replace(inventory, nodes=nodes)


def lane_with(inventory: Inventory, lane: str, **fields: object) -> Inventory:
    return replace(inventory, lanes={**inventory.lanes, lane: replace(inventory.lanes[lane], **fields)})


def checked(desired: Desired, inventory: Inventory, request: PlanRequest | None = None) -> Plan:
    made = plan(desired, inventory, request)
    assert judge(effective(desired, request or PlanRequest()), inventory, made) == ()
    assert made.inputs.engine == "exact"
    assert made.verdict.proof == "optimal"
    return made


def ids(made: Plan) -> list[str]:
    return [step.id for step in made.steps]


def residencies(made: Plan) -> dict[str, str]:
    return {row.lane: f"{row.before.value} to {row.after.value}" for row in made.diff.residency}


def assert_standalone(made: Plan) -> None:
    assert made.routes["cognition"].route == STANDALONE
    assert made.routes["cognition-deep"].route == STANDALONE
    assert made.routes["cognition"].lanes == ("qwen38-27b-03", None)
    assert made.lanes["qwen38-27b-03"].residency is Residency.ALWAYS
    (start,) = made.diff.start
    assert (start.lane, start.residency, start.load_gb) == ("qwen38-27b-03", Residency.ALWAYS, 40)


def test_as_it_is_there_is_nothing_to_do(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    made = checked(desired, inventory)
    assert made.steps == ()
    assert made.verdict.levels[:5] == (0, 0, 0, 0, 0)
    assert made.says.startswith("nothing to do")
    profile = desired.profiles["pair"]
    assert {alias: made.routes[alias].route for alias in profile.routes} == profile.routes
    assert {lane: made.lanes[lane].residency for lane in profile.residency} == profile.residency


@pytest.mark.parametrize("names", [PAIR, PAIR[:1]], ids=["both of the pair", "only 01: the pair needs both"])
def test_cordoned_pair_gives_the_standalone_profile(fleet: tuple[Desired, Inventory], names: tuple[str, ...]) -> None:
    desired, inventory = fleet
    made = checked(cordoned(desired, *names), inventory)
    assert_standalone(made)
    assert made.verdict.levels[:5] == (0, 0, 0, 180, 0)
    assert ids(made) == TO_STANDALONE + PAIR_LEAVES
    stop = made.steps[-1]
    assert (stop.kind.value, stop.does, stop.says) == ("manual", "stop", "stop the pair's server on both nodes")
    assert {read.at: read.equals for read in stop.reads}["/aliases/cognition/lanes/0"] == "qwen38-27b-03"
    (budget,) = made.budget["spark-node-03"]
    assert (budget.always_gb, budget.preferred_gb, budget.budget_gb) == (64, 38, Decimal("106.7"))
    assert made.diff.residency == ()


def test_lost_pair_moves_routes_and_stops_nothing(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    made = checked(desired, nodes_with(inventory, PAIR, seen=Seen.UNKNOWN, liveness=Liveness.LOST))
    assert_standalone(made)
    assert ids(made) == TO_STANDALONE
    assert [note.lane for note in made.notes if note.code == "stopWhenBack"] == ["qwen38-pair"]
    assert "headLost" in {note.code for note in made.notes}


def test_unreadable_pair_changes_nothing_and_is_named(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    made = checked(desired, nodes_with(inventory, PAIR, seen=Seen.UNKNOWN, liveness=Liveness.SUSPECT))
    assert made.steps == ()
    assert [note.node for note in made.notes if note.code == "nodeUnreadable"] == list(PAIR)


def test_pair_stopped_by_hand_is_bridged_and_asked_for(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    made = checked(desired, lane_with(inventory, "qwen38-pair", state=LaneState.STOPPED))
    assert_standalone(made)
    assert made.verdict.levels[:5] == (0, 0, 0, 180, 0)
    assert ids(made) == [*TO_STANDALONE, "start:qwen38-pair"]
    assert (made.steps[-1].kind.value, made.steps[-1].does) == ("manual", "start")


def test_back_again_the_pair_answers_and_the_27b_goes_back_to_auto(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    inventory = lane_with(inventory, "qwen38-27b-03", state=LaneState.RUNNING, residency=Residency.ALWAYS)
    alone = replace(inventory.aliases["cognition"], route=STANDALONE)
    aliases = {**inventory.aliases, "cognition": alone, "cognition-deep": alone}
    made = checked(desired, replace(inventory, aliases=aliases))
    assert made.routes["cognition"].route == PAIR_ROUTE
    assert residencies(made) == {"qwen38-27b-03": "always to auto"}
    assert ids(made) == ["route:cognition", "route:cognition-deep", "residency:qwen38-27b-03"]


def test_short_memory_takes_residency_from_the_lane_that_loads_fastest(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    inventory = lane_with(inventory, "qwen38-27b-03", memory_gb={"spark-node-03": Decimal(45)})
    made = checked(cordoned(desired, *PAIR), inventory)
    assert made.verdict.levels[:5] == (0, 0, 0, 180, 70)
    assert residencies(made) == {"spark03-stt": "always to auto"}
    (change,) = made.diff.residency
    assert change.wished is Residency.ALWAYS
    assert change.because is not None
    assert (change.because.reason, change.because.needs_gb, change.because.short_gb) == ("memory", 107, Decimal("0.3"))
    assert made.routes["image"].route == ("qwen-image-2.1",)
    assert not made.diff.stop or [row.lane for row in made.diff.stop] == ["qwen38-pair"]


@pytest.mark.parametrize(
    ("when_unrouted", "leaves"), [("keep", []), ("stop", PAIR_LEAVES)], ids=["keeps running", "is stopped by hand"]
)
def test_profile_standalone_while_the_pair_runs(
    fleet: tuple[Desired, Inventory], when_unrouted: str, leaves: list[str]
) -> None:
    desired, inventory = fleet
    pair = replace(desired.lanes["qwen38-pair"], when_unrouted=when_unrouted)
    desired = replace(desired, lanes={**desired.lanes, "qwen38-pair": pair})
    made = checked(desired, inventory, PlanRequest(profile="standalone"))
    assert_standalone(made)
    assert ids(made) == TO_STANDALONE + leaves
    assert made.inputs.what_if == ("profile=standalone",)


def test_cordoned_mac_costs_embeddings_their_second_entry(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    made = checked(cordoned(desired, "macbook-local"), inventory)
    assert ids(made) == ["route:embeddings"]
    assert made.routes["embeddings"].route == ("qwen3-embedding-4b", "cloud/openrouter/qwen3-embedding-4b")


def test_old_builds_get_one_model_routes_and_a_manual_residency(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    aliases = {name: replace(alias, route=alias.route[:1]) for name, alias in inventory.aliases.items()}
    inventory = replace(inventory, aliases=aliases)
    inventory = nodes_with(
        inventory, ("spark-node-03",), gateway=replace(inventory.nodes[PAIR[0]].gateway, features=())
    )
    head_build = replace(inventory.nodes[PAIR[0]].gateway, features=(Feature.RESIDENCY,))
    inventory = nodes_with(inventory, PAIR[:1], gateway=head_build)
    made = checked(cordoned(desired, *PAIR), inventory)
    assert ids(made) == ["residency:qwen38-27b-03", *TO_STANDALONE, *PAIR_LEAVES]
    first = made.steps[0]
    assert (first.kind.value, first.does, first.node) == ("manual", "residency", "spark-node-03")
    assert made.steps[1].after == ()  # a step that waits for a person blocks nothing
    assert made.routes["cognition"].route == ("qwen3.8-27b",)
    assert {note.alias for note in made.notes if note.code == "oneModelRoute"} >= {"cognition", "cognition-deep"}


def test_latched_27b_leaves_cognition_to_the_external_model(fleet: tuple[Desired, Inventory]) -> None:
    desired, inventory = fleet
    made = checked(cordoned(desired, *PAIR), lane_with(inventory, "qwen38-27b-03", latched=True))
    assert made.verdict.levels[:5] == (0, 180, 0, 0, 0)
    assert made.routes["cognition"].route == (CLOUD,)
    assert "latched" in {cause.reason for cause in made.routes["cognition"].because}
    assert ids(made) == ["route:cognition", "route:cognition-deep", *PAIR_LEAVES]
