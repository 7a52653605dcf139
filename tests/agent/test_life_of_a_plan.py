"""The life of a plan (lifecycle.md), end to end: real bare remote, real gateways over HTTP, the agent's real turns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lloom_gitops.codec import plan_id
from lloom_gitops.control.lifecycle import Way
from lloom_gitops.model.errors import Refused
from lloom_gitops.model.words import Outcome, Result
from lloom_gitops.sim.three_spark import set_pair

from .conftest import put_pool_back
from .fleet import INVENTORY, PLAN, STATUS, Fleet, PairServer, git

Make = Callable[..., Fleet]
LANE = "qwen38-27b-03"
STANDALONE = ["spark-node-03/qwen3.8-27b", "cloud/openrouter/q38fn"]
PAIR_ROUTE = ["qwen3.8-flash-next", *STANDALONE]


def cordon(fleet: Fleet) -> str:
    """Merge a reviewed change: the pair's nodes are cordoned, with the plan for it."""
    fleet.cordon_pair()
    name = plan_id(fleet.plan_write())
    fleet.commit("Cordon the pair")
    return name


def stop_the_pair(fleet: Fleet, pair: PairServer) -> None:
    pair.stop()
    set_pair(fleet.pool, up=False)


def test_nothing_to_do_makes_no_commit(fleet: Make) -> None:
    here = fleet()
    before = here.tip()
    report = here.turn()
    assert (report.way, report.exit_code) == (Way.NOTHING, 0)
    assert report.says.startswith("nothing to do")
    assert here.tip() == before
    said = here.said()
    assert said is not None
    assert (said.result, said.controller.decision) == (Result.NOTHING, "nothing")


def test_a_reviewed_plan_is_applied_and_its_result_is_one_commit(fleet: Make) -> None:
    here = fleet()
    name = cordon(here)
    merged = here.tip()
    report = here.turn()
    assert (report.way, report.result, report.exit_code) == (Way.REVIEWED, Result.WAITING, 0)
    assert "waits for a person: stop:qwen38-pair" in report.says
    # The pool is as planned.
    assert here.lane("spark-node-03", LANE)["healthy"] is True
    assert here.lane("spark-node-03", LANE)["keepWarm"] is True
    assert here.route("cognition") == here.route("cognition-deep") == STANDALONE
    # One commit upon the merge, with status and inventory together, and the audit facts.
    assert git(here.remote, "rev-list", f"{merged}..main").splitlines() == [report.commit]
    assert set(git(here.remote, "diff", "--name-only", merged, "main").splitlines()) == {STATUS, INVENTORY}
    assert here.subjects()[0] == f"apply: 4 of 5 steps done (plan {name[7:15]})"
    trailers = here.trailers()
    assert trailers.pop("Inventory-Digest").startswith("sha256:")
    assert trailers == {
        "Plan-Id": name,
        "Plan-Commit": merged,
        "Result": "waiting",
        "Steps": "done 4, waiting 1",
        "Trigger": "merge",
        "Agent": "head",
    }
    status = here.status()
    assert status is not None
    assert (status.plan, status.plan_commit, status.result) == (name, merged, Result.WAITING)
    assert status.steps["stop:qwen38-pair"].outcome is Outcome.WAITING
    assert status.aliases["cognition"].serving == "qwen3.8-27b"


def test_a_second_turn_says_nothing_to_do_and_a_done_manual_step_closes_the_apply(
    fleet: Make, pair: PairServer
) -> None:
    here = fleet()
    name = cordon(here)
    here.turn()
    applied = here.tip()
    again = here.turn()
    assert (again.way, again.exit_code) == (Way.NOTHING, 0)
    assert "waits for stop:qwen38-pair" in again.says
    assert here.tip() == applied
    stop_the_pair(here, pair)
    closed = here.turn()
    assert (closed.way, closed.result) == (Way.CLOSES, Result.SUCCEEDED)
    status = here.status()
    assert status is not None
    assert {step.outcome for step in status.steps.values()} == {Outcome.DONE}
    assert (here.trailers()["Result"], here.trailers()["Plan-Id"]) == ("succeeded", name)
    done = here.tip()
    assert here.turn().way is Way.NOTHING
    assert here.tip() == done


@pytest.mark.parametrize("mode", ["off", "advise", "auto"])
def test_an_unplanned_merge_in_each_mode(fleet: Make, mode: str) -> None:
    here = fleet(mode=mode)
    here.cordon_pair()
    merged = here.commit("Cordon the pair, without a plan")
    report = here.turn()
    said = here.said()
    assert said is not None
    if mode == "auto":
        assert (report.way, report.result) == (Way.PLANNED, Result.WAITING)
        assert here.route("cognition") == STANDALONE
        assert here.subjects()[:2] == [
            f"apply: 4 of 5 steps done (plan {report.plan[7:15]})",
            f"plan: start 1, stop 1, route 2 (plan {report.plan[7:15]})",
        ]
        assert set(git(here.remote, "diff", "--name-only", merged, "main~1").splitlines()) <= {PLAN, INVENTORY}
        return
    assert report.exit_code == 0, "not an error"
    assert here.tip() == merged
    assert here.route("cognition") == PAIR_ROUTE
    assert here.lane("spark-node-03", LANE)["healthy"] is False, "no node is touched"
    assert said.controller.decision == "unplanned"
    if mode == "off":
        assert report.way is Way.REPORTED
        assert "plan --write" in said.controller.because["hint"]
        assert git(here.remote, "branch", "--list", "lloom/advice") == ""
        return
    assert report.way is Way.ADVISED
    advice = here.tip("lloom/advice")
    assert git(here.remote, "rev-parse", "lloom/advice~1") == merged
    assert here.show(advice, PLAN) is not None
    assert here.turn().advice is None, "the same advice is not pushed again"
    assert here.tip("lloom/advice") == advice
    # Merging the advice is a review.
    git(here.desk, "fetch", "-q", "origin", "lloom/advice")
    git(here.desk, "merge", "-q", "--no-edit", "--no-ff", "FETCH_HEAD")
    git(here.desk, "push", "-q", "origin", "HEAD:main")
    assert here.turn().way is Way.REVIEWED
    assert here.route("cognition") == STANDALONE


def test_plans_by_the_agent_apply_a_merge_in_every_mode_and_leave_drift_to_the_mode(
    fleet: Make, pair: PairServer
) -> None:
    here = fleet(mode="off", plan="agent")
    here.turn()
    here.cordon_pair()
    here.commit("Cordon the pair")
    report = here.turn()
    assert (report.way, report.result) == (Way.PLANNED, Result.WAITING)
    assert here.route("cognition") == STANDALONE
    assert here.trailers()["Trigger"] == "merge"
    stop_the_pair(here, pair)
    assert here.turn().way is Way.CLOSES
    # Nobody asked for this one.
    here.pool.call("spark-node-03", "POST", f"/gateway/runtimes/{LANE}/stop", {})
    before = here.tip()
    drifted = here.turn()
    assert (drifted.way, drifted.because["reason"]) == (Way.REPORTED, "drift")
    assert here.tip() == before
    said = here.said()
    assert said is not None
    assert [(row.lane, row.field, row.seen) for row in said.drift] == [(LANE, "state", "stopped")]


def test_a_review_stands_for_the_refreshed_plan(fleet: Make) -> None:
    """The pool moved on between plan and merge: the plan is made anew with the same moves, and says whose it is."""
    here = fleet()
    name = cordon(here)
    here.edit("fleet/pool.yaml", r"mode: 'advise'", "mode: 'off'")
    merged = here.commit("Let the controller rest")  # the plan is not current any more
    report = here.turn()
    assert (report.way, report.reviewed_as) == (Way.REFRESHED, name)
    assert report.plan != name
    assert here.subjects()[:3] == [
        f"apply: 4 of 5 steps done (plan {report.plan[7:15]})",
        f"plan: start 1, stop 1, route 2 (plan {report.plan[7:15]})",
        "Let the controller rest",
    ]
    assert here.trailers("main~1")["Reviewed-As"] == here.trailers()["Reviewed-As"] == name
    assert here.trailers()["Plan-Commit"] == here.tip("main~1") == report.plan_commit
    assert git(here.remote, "rev-parse", "main~2") == merged


def test_two_pull_requests_at_once(fleet: Make) -> None:
    """The second's plan file conflicts, rightly; `plan --write --onto` settles it, and the agent applies that plan."""
    here = fleet()
    git(here.desk, "switch", "-q", "-c", "second")
    here.set_state("macbook-local", "cordon")
    here.plan_write()
    here.commit("Cordon the MacBook", push=False)
    git(here.desk, "switch", "-q", "main")
    here.cordon_pair()
    first = plan_id(here.plan_write())
    here.commit("Cordon the pair")
    git(here.desk, "switch", "-q", "second")
    merge = git(here.desk, "merge", "--no-edit", "main", check=False)
    assert "CONFLICT" in merge
    second = plan_id(here.plan_write("--onto", "main"))
    here.commit("Cordon the MacBook too", push=False)
    git(here.desk, "push", "-q", "origin", "HEAD:main")
    report = here.turn()
    assert (report.way, report.plan) == (Way.REVIEWED, second)
    assert second != first
    assert here.route("cognition") == STANDALONE
    assert here.route("embeddings") == ["spark-node-03/qwen3-embedding-4b", "cloud/openrouter/qwen3-embedding-4b"]


def test_a_revert_brings_the_old_state_back(fleet: Make) -> None:
    """Its old plan file is no plan for now: the way back is planned anew."""
    here = fleet(mode="auto")
    cordon(here)
    assert here.turn().result is Result.WAITING  # nobody stopped the pair
    here.pull()
    git(here.desk, "revert", "--no-edit", "HEAD~1")
    git(here.desk, "push", "-q", "origin", "HEAD:main")
    report = here.turn()
    assert (report.way, report.result) == (Way.PLANNED, Result.SUCCEEDED)
    assert here.route("cognition") == PAIR_ROUTE
    assert here.lane("spark-node-03", LANE)["keepWarm"] is False, "back to the wish of a later entry"
    assert here.lane("spark-node-03", LANE)["healthy"] is True, "and not stopped"
    assert here.turn().way is Way.NOTHING


def test_what_a_person_reverted_the_agent_does_not_do_again(fleet: Make) -> None:
    here = fleet(mode="auto")
    here.cordon_pair()
    here.commit("Cordon the pair, without a plan")
    planned = here.turn()
    assert planned.way is Way.PLANNED
    here.pull()
    git(here.desk, "revert", "--no-edit", planned.plan_commit)
    git(here.desk, "push", "-q", "origin", "HEAD:main")
    here.pool.edit("spark-node-01", {"aliases": _first_aliases()})
    before = here.tip()
    held = here.turn()
    assert (held.way, held.because["reason"]) == (Way.HELD, "reverted")
    assert here.tip() == before
    # `resume` is a commit to the holds.
    text = "apiVersion: lloom-gitops/v1\nkind: Holds\nmetadata: {name: holds}\nspec:\n  suspend: {on: false}\n"
    here.write("fleet/holds.yaml", text)
    here.commit("Resume")
    assert here.turn().result is Result.WAITING
    assert here.route("cognition") == STANDALONE


def test_what_was_undone_by_hand_is_done_again(fleet: Make) -> None:
    """Auto, and somebody puts everything back by hand: the same moves, applied once more and then at rest."""
    here = fleet(mode="auto")
    here.cordon_pair()
    here.commit("Cordon the pair, without a plan")
    assert here.turn().result is Result.WAITING
    for _ in range(2):
        put_pool_back(here.pool)
        again = here.turn()
        assert (again.way in (Way.PLANNED, Way.REFRESHED), again.result) == (True, Result.WAITING), again
        assert here.route("cognition") == STANDALONE
        rest = here.turn()
        assert rest.way is Way.NOTHING, rest


def _first_aliases() -> dict[str, object]:
    from lloom_gitops.sim.three_spark import HEAD, three_spark_configs

    return dict(three_spark_configs()[HEAD]["aliases"])


def test_half_applied_then_superseded(fleet: Make) -> None:
    """A signal ends the apply at a safe point; a newer merged plan is applied from what was reached."""
    here = fleet()
    first, starts = cordon(here), here.lane("spark-node-03", LANE)["starts"]
    asked: list[str] = []

    def stop_once_the_lane_is_up() -> str | None:
        if not asked and here.lane("spark-node-03", LANE)["healthy"]:
            asked.append("SIGTERM")
        return asked[0] if asked else None

    report = here.turn(stop=stop_once_the_lane_is_up)
    assert (report.result, report.superseded_by, report.exit_code) == (Result.SUPERSEDED, "SIGTERM", 9)
    assert report.steps["start:qwen38-27b-03"].outcome is Outcome.DONE, "the step in hand is finished"
    assert report.steps["route:cognition"].outcome is Outcome.SKIPPED
    assert here.route("cognition") == PAIR_ROUTE
    assert "superseded by SIGTERM" in git(here.remote, "log", "-1", "--format=%b", "main")
    # A newer plan comes in: it starts from what was reached.
    here.pull()
    here.set_state("macbook-local", "cordon")
    second = plan_id(here.plan_write())
    here.commit("Cordon the MacBook too")
    after = here.turn()
    assert (after.way, after.plan) == (Way.REVIEWED, second)
    assert second != first
    assert here.lane("spark-node-03", LANE)["starts"] == starts + 1
    assert here.route("cognition") == STANDALONE


def test_a_plan_merged_meanwhile_supersedes_the_one_in_hand(fleet: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from lloom_gitops.agent import watching

    here = fleet()
    cordon(here)
    newer: list[str] = []
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)

    def merge_once_the_lane_is_up() -> str | None:
        if not newer and here.lane("spark-node-03", LANE)["healthy"]:
            here.set_state("macbook-local", "cordon")
            here.plan_write()
            newer.append(here.commit("Cordon the MacBook too"))
        return None

    report = here.turn(stop=merge_once_the_lane_is_up)
    assert (report.result, report.superseded_by) == (Result.SUPERSEDED, newer[0][:8])
    assert report.interval_seconds == 0, "the newest is next, at once"
    status = here.status()
    assert status is not None
    assert status.superseded_by == newer[0][:8]
    following = here.turn()
    assert (following.way, following.plan_commit) == (Way.REVIEWED, newer[0])
    assert here.route("cognition") == STANDALONE


def test_a_stale_step_is_planned_anew(fleet: Make) -> None:
    """Memory that the plan counts on is taken meanwhile: the step names the field, the next turn has another plan."""
    here = fleet()
    cordon(here)
    here.pool.control("spark-node-03", "set-foreign", gb=30)
    report = here.turn()
    assert (report.way, report.result, report.exit_code) == (Way.REVIEWED, Result.FAILED, 9)
    assert report.steps["start:qwen38-27b-03"].outcome is Outcome.STALE
    assert "memoryDomains/0/freeGb expected at least 40" in (report.steps["start:qwen38-27b-03"].says or "")
    assert here.lane("spark-node-03", LANE)["healthy"] is False
    here.pool.control("spark-node-03", "set-foreign", gb=0)
    again = here.turn()
    assert (again.way, again.result) == (Way.REFRESHED, Result.WAITING)


def test_results_on_a_branch_of_their_own(fleet: Make) -> None:
    here = fleet(results="branch")
    name = cordon(here)
    merged = here.tip()
    report = here.turn()
    assert report.result is Result.WAITING
    assert here.tip() == merged, "the protected branch holds desired state alone"
    assert here.trailers("lloom-results")["Plan-Id"] == name
    status = here.status("lloom-results")
    assert status is not None
    assert status.plan_commit == merged
    assert here.turn().way is Way.NOTHING


# Refusals ------------------------------------------------------------------------------------------------------------


def test_a_hand_edited_plan_is_not_applied(fleet: Make) -> None:
    here = fleet()
    here.cordon_pair()
    here.plan_write()
    here.edit(PLAN, r"timeoutSeconds: 1800", "timeoutSeconds: 1801")
    here.commit("Cordon the pair, with a better plan")
    report = here.turn()
    assert report.way is Way.ADVISED
    assert here.route("cognition") == PAIR_ROUTE
    with pytest.raises(Refused) as refusal:
        here.turn(by_person=True)
    assert refusal.value.exit_code == 5


def test_a_rewritten_branch_is_refused(fleet: Make) -> None:
    here = fleet()
    start = here.tip()
    cordon(here)
    here.turn()
    git(here.desk, "push", "-q", "--force", "origin", f"{start}:main")
    report = here.turn()
    assert (report.way, report.exit_code, report.because["reason"]) == (Way.REFUSED, 5, "notDescendant")
    assert here.tip() == start


def test_suspended(fleet: Make) -> None:
    here = fleet()
    holds = "apiVersion: lloom-gitops/v1\nkind: Holds\nmetadata: {name: holds}\nspec:\n"
    here.write("fleet/holds.yaml", holds + "  suspend: {on: true, reason: firmware day}\n")
    cordon(here)
    report = here.turn()
    assert (report.way, report.exit_code, report.because["says"]) == (Way.HELD, 0, "firmware day")
    assert here.route("cognition") == PAIR_ROUTE
