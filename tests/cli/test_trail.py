"""`log`, `status` and `why`: what git alone can tell of plans and their results."""

from __future__ import annotations

from pathlib import Path

import pytest

from lloom_gitops.codec.documents import Metadata, dump_document
from lloom_gitops.gitstore.message import CommitMessage
from lloom_gitops.model.document import Kind
from lloom_gitops.model.status import AgentStatus, AliasStatus, ControllerStatus, Status, StepStatus
from lloom_gitops.model.words import Mode, Outcome, Result

from .conftest import Fleet

PLAN_ID = "sha256:" + "4f2a91c0" * 8
STATUS = Status(
    plan=PLAN_ID,
    result=Result.PARTIAL,
    steps={
        "start:qwen38-27b-03": StepStatus(outcome=Outcome.FAILED, says="110.2 GB used", retry="never"),
        "route:cognition": StepStatus(outcome=Outcome.SKIPPED),
    },
    aliases={"cognition": AliasStatus(serving="cloud/openrouter/q38fn", planned="qwen3.8-27b")},
    controller=ControllerStatus(mode=Mode.ADVISE, decision="hold", because={"reason": "cooldown", "leftSeconds": 240}),
    agent=AgentStatus(name="head", epoch=7),
)


def status_file(status: Status) -> str:
    return dump_document(Kind.STATUS, Metadata(name="status"), status)


@pytest.fixture
def trail(fleet: Fleet) -> Fleet:
    """A person's plan, then what an agent made of it."""
    fleet.cordon("spark-node-01")
    fleet.call("plan", "--write")
    fleet.commit("Cordon the first Spark")
    (fleet.root / "fleet/status.yaml").write_text(status_file(STATUS))
    message = CommitMessage(
        subject="apply: 1 of 2 steps done (plan 4f2a91c0)",
        body=("start:qwen38-27b-03 failed: 110.2 GB used", "route:cognition skipped"),
        trailers={"Plan-Id": PLAN_ID, "Result": "partial", "Trigger": "merge", "Agent": "head"},
    )
    fleet.commit(message.render())
    return fleet


def test_the_log_is_read_from_git_alone(trail: Fleet) -> None:
    blocks = trail.call("log").out.split("\n")
    assert "apply: 1 of 2 steps done (plan 4f2a91c0)" in blocks[0]
    assert "plan 4f2a91c0, asked by merge, agent head" in blocks[1]
    assert blocks[2].strip() == "result partial"
    assert "Cordon the first Spark" in blocks[3]
    assert "by Fleet Owner, plan " in blocks[4]
    assert "start:qwen38-27b-03" not in "\n".join(blocks)


def test_one_plan_is_followed_from_its_commit_to_its_result(trail: Fleet) -> None:
    told = trail.call("--json", "log").json["log"]
    assert [entry["result"] for entry in told] == ["partial", None]
    own = told[1]["plan"]
    assert own.startswith("sha256:")
    assert [entry["commit"] for entry in trail.call("--json", "log", "--plan", own[7:15]).json["log"]] == [
        told[1]["commit"]
    ]
    with_steps = trail.call("log", "--plan", "4f2a91c0").out
    assert "start:qwen38-27b-03 failed: 110.2 GB used" in with_steps
    assert "Cordon the first Spark" not in with_steps


def test_a_plan_that_never_was(trail: Fleet) -> None:
    ran = trail.call("log", "--plan", "00000000")
    assert (ran.code, ran.out) == (0, "")
    assert "no plan 00000000 in the history" in ran.err


def test_before_any_plan(fleet: Fleet) -> None:
    assert fleet.call("log").err == "no plan was committed yet\n"
    assert fleet.call("why").out == "No agent has written a status yet: nothing was applied.\n"
    assert fleet.call("--json", "status").json["status"] is None


def test_status_and_why(trail: Fleet) -> None:
    why = trail.call("why").out
    assert why == (
        "Plan 4f2a91c0 is carried out in part, see start:qwen38-27b-03 (110.2 GB used); "
        "the controller holds: the last change is too short ago (left 4 min).\n"
    )
    shown = trail.call("status").out
    assert "failed   start:qwen38-27b-03  110.2 GB used; not tried again until something changes" in shown
    assert "cognition  cloud/openrouter/q38fn  planned: qwen3.8-27b" in shown
    told = trail.call("--json", "status").json
    assert told["status"]["result"] == "partial"
    assert told["source"] == "fleet/status.yaml"


def test_the_agents_own_ref_is_read_first(trail: Fleet, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    trail.git("init", "--quiet", "--bare", str(remote))
    trail.git("remote", "add", "origin", str(remote))
    newer = Status(plan=PLAN_ID, result=Result.SUCCEEDED, agent=AgentStatus(name="head", epoch=8))
    (trail.root / "fleet/status.yaml").write_text(status_file(newer))
    trail.git("stash", "--quiet")
    trail.git("push", "--quiet", "origin", "main", "stash@{0}:refs/lloom/agent/head")
    trail.git("stash", "drop", "--quiet")

    ran = trail.call("why")
    assert ran.out == "Plan 4f2a91c0 is carried out.\n"
    assert "refs/lloom/agent/head" in ran.err

    remote.rename(tmp_path / "away.git")
    away = trail.call("why")
    assert away.out == ran.out
    assert "origin can't be reached: shown as last fetched" in away.err


def test_what_the_agent_writes_is_read_from_the_results_branch(fleet: Fleet) -> None:
    branch = "lloom/results"
    (fleet.root / "fleet/status.yaml").write_text(status_file(STATUS))
    fleet.git("switch", "--quiet", "--create", branch)
    fleet.commit("apply: 1 of 2 steps done")
    fleet.git("switch", "--quiet", "main")
    fleet.edit("fleet/pool.yaml", lambda text: f"{text}  writeBack: {{results: branch, resultsBranch: {branch}}}\n")
    fleet.git("rm", "--quiet", "fleet/observed/inventory.yaml")
    fleet.cordon("spark-node-01")
    assert fleet.call("plan", "--write").code == 0
    fleet.commit("Cordon the first Spark")

    planned = fleet.call("plan", "--offline")
    assert f"{branch}:fleet/observed/inventory.yaml" in planned.err
    assert fleet.call("plan", "--check").code == 0
    subjects = [entry["subject"] for entry in fleet.call("--json", "log").json["log"]]
    assert sorted(subjects) == ["Cordon the first Spark", "apply: 1 of 2 steps done"]
    assert fleet.call("why").out.startswith("Plan 4f2a91c0 is carried out in part")


def test_the_log_of_two_branches_is_in_order_of_time_in_any_time_zone(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.edit("fleet/pool.yaml", lambda text: f"{text}  writeBack: {{results: branch, resultsBranch: results}}\n")
    fleet.commit("Put results on a branch")
    fleet.git("branch", "results")
    for branch, when in (
        ("main", "2026-03-01T10:00:00+09:00"),
        ("results", "2026-03-01T03:00:00+00:00"),
        ("main", "2026-02-28T23:00:00-05:00"),
        ("results", "2026-03-01T15:00:00+10:00"),
    ):
        monkeypatch.setenv("GIT_COMMITTER_DATE", when)
        fleet.git("switch", "--quiet", branch)
        (fleet.root / "fleet/status.yaml").write_text(status_file(Status(plan_commit=when)))
        fleet.commit(when)
    fleet.git("switch", "--quiet", "main")
    assert [entry["subject"] for entry in fleet.call("--json", "log").json["log"]] == [
        "2026-03-01T15:00:00+10:00",
        "2026-02-28T23:00:00-05:00",
        "2026-03-01T03:00:00+00:00",
        "2026-03-01T10:00:00+09:00",
    ]


def test_diff_tells_what_people_changed_since_the_branch_left_main(fleet: Fleet, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    fleet.git("init", "--quiet", "--bare", str(remote))
    fleet.git("remote", "add", "origin", str(remote))
    fleet.call("cordon", "spark-node-01", "--reason", "firmware", "--commit")
    fleet.call("plan", "--write")
    assert fleet.call("diff").out.startswith("This plan"), "without a remote's branch it is left out"
    fleet.git("push", "--quiet", "origin", "HEAD~1:refs/heads/main")
    fleet.git("fetch", "--quiet")
    base = fleet.git("rev-parse", "HEAD~1")
    node = "fleet/nodes/spark-node-01.yaml"

    shown = fleet.call("diff").out
    assert shown.startswith(
        f"What people changed since {base[:8]}\n"
        f"  ~ {node}: reason unset → firmware\n  ~ {node}: state serve → cordon\n\nThis plan"
    )
    fleet.commit("Plan it")
    assert fleet.call("diff", "HEAD").out == shown
    assert fleet.call("--json", "diff").json["wishes"] == {
        "since": base,
        "changes": [
            {"file": node, "name": "", "field": "reason", "change": "changed", "before": "unset", "after": "firmware"},
            {"file": node, "name": "", "field": "state", "change": "changed", "before": "serve", "after": "cordon"},
        ],
    }
    assert fleet.call("diff", "--since", "HEAD").out.startswith("This plan")
    assert fleet.call("diff", "--since", "no-such-rev").code == 2


def test_diff_leaves_out_what_it_can_not_compare(fleet: Fleet) -> None:
    fleet.call("cordon", "spark-node-01", "--commit")
    fleet.call("plan", "--write")
    fleet.edit("fleet/aliases.yaml", lambda text: text.replace("models:", "modles:"))
    ran = fleet.call("diff", "--since", "HEAD~1")
    assert ran.code == 0
    assert ran.out.startswith("This plan")
    assert "the documents have errors: what people changed since" in ran.err
