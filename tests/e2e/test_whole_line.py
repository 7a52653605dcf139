"""The main job, end to end: from a change of YAML to lanes and a result commit, and everything a second time."""

from __future__ import annotations

import json
from collections.abc import Callable

from lloom_gitops.sim.demo_fleet import KEY_ENV
from lloom_gitops.sim.three_spark import HEAD

from .conftest import ADMIN_KEY, BACKEND, LITERAL_KEY, TOKEN, assert_nothing_leaked
from .spilling import spilling_gateway
from .world import INVENTORY, PLAN, STATUS, World

Make = Callable[..., World]
LANE = "qwen38-27b-03"
PAIR_STOP = "stop:qwen38-pair"


def describe(world: World) -> None:
    """The pool as YAML on the remote, and an agent with its clone."""
    assert world.run("check").code == 0
    world.publish("Describe the pool")
    world.hire()


def review(world: World) -> str:
    """Cordon the pair with its plan, as CI and a person see it, and merge; the merge's commit."""
    world.cordon_pair()
    assert world.run("plan", "--offline", "--exit-code").code == 4
    written = world.run("plan", "--write")
    assert written.code == 0
    plan = (world.desk / PLAN).read_bytes()
    assert "up to date" in world.run("plan", "--write").err
    assert (world.desk / PLAN).read_bytes() == plan
    world.git(world.desk, "switch", "-q", "-c", "firmware")
    world.git(world.desk, "add", "-A")
    world.git(world.desk, "commit", "-q", "-m", "Cordon the pair")
    checked = world.run("plan", "--check")
    assert (checked.code, checked.out) == (0, "fleet/plan.yaml is authentic and current.\n")
    wishes, _, shown = world.run("diff").out.partition("\n\n")
    assert wishes.count("state serve → cordon") == 2
    assert shown == written.out
    world.git(world.desk, "switch", "-q", "main")
    world.git(world.desk, "merge", "-q", "--no-ff", "-m", "Merge the firmware day", "firmware")
    world.git(world.desk, "push", "-q", "origin", "main")
    return world.tip()


def nothing_to_do(world: World) -> None:
    """The pool runs as wished, a person and the agent see it, and there is no commit."""
    before = world.tip()
    planned = world.run("plan", "--exit-code")
    assert (planned.code, planned.out.split(":")[0]) == (0, "Nothing to do")
    turn = world.agent()
    assert (turn.code, turn.out) == (0, "nothing to do: what runs is what is wanted\n"), turn
    assert world.tip() == before


def everything_again(world: World) -> None:
    """Each command once more: nothing to do, no commit, no file changed."""
    world.pull()
    before = world.tip()
    nothing_to_do(world)
    assert "up to date" in world.run("inventory", "--write").err
    assert "nothing to do" in world.run("plan", "--write").err
    assert world.run("plan", "--check").code == 0
    applied = world.run("apply", where=world.home)
    assert (applied.code, applied.out) == (0, "nothing to do: what runs is what is wanted\n"), applied
    assert world.tip() == before
    assert world.git(world.desk, "status", "--porcelain") == ""
    assert world.git(world.home, "status", "--porcelain") == ""


def look(world: World) -> None:
    """All that shows how it stands, for people and for programs."""
    for words in ("status", "why", "log"):
        assert world.run(*words.split()).code == 0
    for words in ("status", "log", "diff", "inventory", "plan --offline"):
        shown = world.run(*words.split(), "--json")
        assert shown.code == 0, shown
        assert shown.json["formatVersion"] == "1.0"


def test_from_yaml_to_lanes_and_back_into_git(make_world: Make) -> None:
    world = make_world()
    describe(world)
    assert world.run("inventory", "--write", "--json").json["written"] is False, "the fleet is what the pool looks like"
    nothing_to_do(world)
    assert world.answer("cognition") == "qwen3.8-flash-next"
    merged = review(world)

    dry = world.run("apply", "--dry-run", where=world.home)
    assert dry.code == 0
    assert (world.tip(), world.lane("spark-node-03", LANE)["healthy"]) == (merged, False)

    first = world.agent()
    assert first.code == 0, first
    assert world.outcomes() == {
        "start:qwen38-27b-03": "done",
        "route:cognition": "done",
        "route:cognition-deep": "done",
        "drain:qwen38-pair": "done",
        PAIR_STOP: "waiting",
    }
    assert world.git(world.remote, "rev-list", "--count", f"{merged}..main") == "1"
    assert world.changed(merged) == {STATUS, INVENTORY}
    lane = world.lane("spark-node-03", LANE)
    assert (lane["healthy"], lane["keepWarm"], lane["starts"]) == (True, True, 1)
    assert world.route("cognition") == ["spark-node-03/qwen3.8-27b", "cloud/openrouter/q38fn"]
    assert world.answer("cognition") == "qwen3.8-27b"

    waiting = world.tip()
    assert world.agent().out == f"nothing to do now: waits for {PAIR_STOP}\n"
    assert world.tip() == waiting

    world.stop_pair()
    assert world.agent().code == 0
    assert (world.status().result, world.outcomes()[PAIR_STOP]) == ("succeeded", "done")
    everything_again(world)
    assert world.lane("spark-node-03", LANE)["starts"] == 1
    look(world)
    assert world.locks() == []
    assert_nothing_leaked(world)


def test_a_pool_of_old_builds(make_world: Make) -> None:
    """No residency route and one target an alias: residency is a person's, routes go into the head's config file."""
    world = make_world(build="snapshot")
    assert world.run("inventory", "--write").code == 0
    describe(world)
    nothing_to_do(world)
    assert world.route("cognition") == ["qwen3.8-flash-next"]
    merged = review(world)

    assert world.agent().code == 0
    assert world.outcomes() == {
        "residency:qwen38-27b-03": "waiting",
        "start:qwen38-27b-03": "done",
        "route:cognition": "done",
        "route:cognition-deep": "done",
        "drain:qwen38-pair": "done",
        PAIR_STOP: "waiting",
    }
    assert world.changed(merged) == {STATUS, INVENTORY}
    assert world.route("cognition") == ["spark-node-03/qwen3.8-27b"]
    assert world.answer("cognition") == "qwen3.8-27b"
    assert f"https://{BACKEND}/v1" in world.pool.configs[HEAD].read_text(), "the rest of the file stays"

    # A person does what waits: the residency in the node's own file, and the pair.
    runtimes = json.loads(world.pool.configs["spark-node-03"].read_text())["runtimes"]
    runtimes[LANE]["keepWarm"] = True
    world.pool.edit("spark-node-03", {"runtimes": runtimes})
    world.stop_pair()
    _until_closed(world)
    assert set(world.outcomes().values()) == {"done"}
    everything_again(world)
    look(world)
    assert_nothing_leaked(world)


def test_what_a_gateway_says_of_a_failure_is_told_without_keys_and_addresses(make_world: Make) -> None:
    """Its words go into status, commits and output, whatever its model server printed."""
    world = make_world()
    spilled = f"{BACKEND}:9099 with {TOKEN}, key {LITERAL_KEY}, not {ADMIN_KEY}"
    message = f"GET http://{BACKEND}:9099/v1: 401 from {spilled}"
    with spilling_gateway(world.pool.urls["spark-node-03"], message) as url:
        world.move("spark-node-03", url)
        describe(world)
        merged = review(world)
        failed = world.agent()
        assert failed.code == 9, failed
        start = world.status().steps[f"start:{LANE}"]
        assert (start.outcome, start.retry) == ("failed", "never")
        assert "runtime_memory_safety_abort" in (start.says or ""), "what it is about is told"
        assert STATUS in world.changed(merged)
        assert world.answer("cognition") == "qwen3.8-flash-next", "nothing was stopped for a start that failed"
        for words in ("status", "--json status", "why", "log"):
            assert world.run(*words.split()).code == 0
        assert world.run("inventory", env={KEY_ENV: LITERAL_KEY + "-too"}).code == 7, "a wrong key"
    assert_nothing_leaked(world)


def _until_closed(world: World) -> None:
    """Turns of the agent until it saw all; the lane is started again for its residency and may still load."""
    for _ in range(5):
        assert world.agent().code == 0
        if world.status().result == "succeeded":
            return
    raise AssertionError(world.outcomes())
