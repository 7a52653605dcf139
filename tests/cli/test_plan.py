"""`plan` and `diff` on a real work tree: what is shown, what is written, and which committed plan may be applied."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from lloom_gitops.codec.documents import Metadata, dump_document, load_document, plan_id
from lloom_gitops.codec.values import digest
from lloom_gitops.model.document import Kind
from lloom_gitops.model.plan import Plan
from tests.pools import REPO

from .conftest import Fleet, run

PLAN = "fleet/plan.yaml"
INVENTORY = "fleet/observed/inventory.yaml"


def planned(fleet: Fleet) -> Plan:
    plan: Plan = load_document(Kind.PLAN, (fleet.root / PLAN).read_bytes(), PLAN).spec
    return plan


def forge(fleet: Fleet, pattern: str, replacement: str) -> None:
    """Changes the plan's text and gives it the id that fits, as someone would who wants a step in."""
    fleet.edit(PLAN, lambda text: re.sub(pattern, replacement, text, count=1))
    plan = planned(fleet)
    (fleet.root / PLAN).write_text(dump_document(Kind.PLAN, Metadata(name="plan", id=plan_id(plan)), plan))


def test_nothing_to_do_says_so_and_writes_nothing(fleet: Fleet) -> None:
    ran = fleet.call("plan", "--write", "--exit-code")
    assert ran.code == 0
    assert ran.out.startswith("Nothing to do: ")
    assert f"there is nothing to do: {PLAN} is left as it is" in ran.err
    assert fleet.git("status", "--porcelain") == ""
    assert fleet.call("plan", "--check").out == "planning yields nothing to do.\n"


def test_the_plan_is_shown_written_once_and_checked(fleet: Fleet) -> None:
    fleet.cordon("spark-node-01", "spark-node-02")
    shown = fleet.call("plan", "--offline", "--exit-code")
    assert shown.code == 4
    for words in ("+ qwen38-27b-03", "- qwen38-pair", "~ cognition", "by hand on spark-node-01 and spark-node-02"):
        assert words in shown.out
    assert not (fleet.root / PLAN).exists()

    written = fleet.call("plan", "--write")
    assert (written.code, written.out) == (0, shown.out)
    assert f"wrote {PLAN}" in written.err
    first = (fleet.root / PLAN).read_bytes()
    assert f"{PLAN} is up to date" in fleet.call("plan", "--write").err
    assert (fleet.root / PLAN).read_bytes() == first
    assert [path.name for path in (fleet.root / "fleet").glob(".*")] == []

    assert fleet.call("diff").out == shown.out
    checked = fleet.call("plan", "--check", "--json")
    assert checked.code == 0
    assert checked.json["check"] == "authentic"
    assert checked.json["plan"] == yaml.safe_load(first)["metadata"]["id"]


def test_the_plan_goes_where_out_says(fleet: Fleet, tmp_path: Path) -> None:
    what_if = ("plan", "--offline", "--cordon", "spark-node-01")
    piped = fleet.call(*what_if, "--out", "-")
    assert yaml.safe_load(piped.out)["kind"] == "Plan"
    fleet.call(*what_if, "--out", str(fleet.root / "made.yaml"))
    assert fleet.read("made.yaml") == piped.out
    told = fleet.call("--json", *what_if).json
    assert told["id"] == yaml.safe_load(piped.out)["metadata"]["id"]
    assert told["plan"]["inputs"]["whatIf"] == ["cordon=spark-node-01"]


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        pytest.param(("--cordon", "spark-node-01"), "--cordon spark-node-01", id="cordon"),
        pytest.param(("--profile", "standalone"), "--profile standalone", id="profile"),
        pytest.param(("--pin", "qwen3.8-27b@spark-node-03"), "--pin qwen3.8-27b@spark-node-03", id="pin"),
        pytest.param(("--effort", "quick"), "--effort quick", id="effort"),
        pytest.param(("--consider-installs",), "--consider-installs", id="installs"),
        pytest.param(("--inventory", str(REPO / INVENTORY)), "--inventory inventory.yaml", id="inventory"),
    ],
)
def test_a_what_if_plan_only_shows(fleet: Fleet, flags: tuple[str, ...], shown: str) -> None:
    ran = fleet.call("plan", "--offline", *flags)
    assert ran.code == 0
    assert f"What if ({shown})" in ran.out
    assert "There is no committed plan to compare with." in ran.out
    for refused in ("--write", "--check"):
        ended = fleet.call("plan", refused, *flags)
        assert (ended.code, ended.out) == (2, "")
        assert f"{refused} can't go with {shown}" in ended.err
    assert fleet.git("status", "--porcelain") == ""


def test_a_what_if_plan_is_compared_with_the_committed_one(fleet: Fleet) -> None:
    fleet.cordon("spark-node-01")
    fleet.call("plan", "--write")
    ran = fleet.call("plan", "--offline", "--cordon", "macbook-local", "--cordon", "spark-node-03")
    compared = ran.out.split("Against the committed plan\n")[1]
    assert re.search(r"lane +qwen38-27b-03 +always → not planned", compared)
    assert re.search(r"route +cognition +qwen3.8-27b, cloud/openrouter/q38fn → cloud/openrouter/q38fn\n", compared)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--pin", "nowhere"), id="a pin without a node"),
        pytest.param(("--pin", "model@a++b"), id="a pin with an empty node"),
        pytest.param(("--offline", "--cordon", "spark-node-1"), id="a cordon of no node"),
        pytest.param(("--offline", "--pin", "qwen3.8-27b@nowhere"), id="a pin to no node"),
        pytest.param(("--offline", "--profile", "standalon"), id="no such profile"),
        pytest.param(("--effort", "heroic"), id="an effort that is none"),
        pytest.param(("--inventory", "no-such-file.yaml"), id="no such file"),
        pytest.param(("--onto", "main"), id="onto without write"),
        pytest.param(("--check", "--write"), id="check and write"),
        pytest.param(("--write", "--onto", "no-such-rev"), id="no such revision"),
    ],
)
def test_contradictions_are_usage_errors(fleet: Fleet, words: tuple[str, ...]) -> None:
    ran = fleet.call("plan", *words)
    assert (ran.code, ran.out) == (2, "")


def test_without_an_inventory_nothing_is_planned(fleet: Fleet) -> None:
    (fleet.root / INVENTORY).unlink()
    ran = fleet.call("plan", "--offline")
    assert (ran.code, ran.out) == (5, "")
    assert "lloom-gitops inventory --write" in ran.err


def test_no_plan_is_made_where_no_gateway_answers(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLOOM_CLUSTER_KEY", "key")
    for node in (fleet.root / "fleet/nodes").glob("*.yaml"):
        node.write_text(re.sub(r"endpoint: .*", "endpoint: http://127.0.0.1:9", node.read_text()))
    ran = fleet.call("plan")
    assert (ran.code, ran.out) == (7, "")
    assert "no gateway could be read" in ran.err
    assert "plan --offline" in ran.err


class TestCheck:
    """Which committed plan may be applied, and what a refusal names."""

    @pytest.fixture
    def merged(self, fleet: Fleet) -> Fleet:
        fleet.cordon("spark-node-01", "spark-node-02")
        fleet.call("plan", "--write")
        fleet.commit("Empty the pair")
        return fleet

    def refusal(self, fleet: Fleet, code: str, pointer: str) -> None:
        ran = fleet.call("plan", "--check", "--json")
        assert ran.code == 5
        error = ran.json["error"]
        assert error["code"] == code
        assert [finding["pointer"] for finding in error["findings"]][:1] == [pointer]
        assert error["findings"][0]["file"] == PLAN
        assert error["hint"]

    def test_the_agents_commits_never_make_a_plan_stale(self, merged: Fleet) -> None:
        merged.edit(INVENTORY, lambda text: text.replace("freeGb: 800", "freeGb: 700"))
        merged.commit("Observe the pool")
        assert merged.call("plan", "--check").code == 0

    def test_approving_and_suspending_never_make_a_plan_stale(self, merged: Fleet) -> None:
        holds = "apiVersion: lloom-gitops/v1\nkind: Holds\nmetadata: {name: holds}\nspec: {suspend: {on: true}}\n"
        (merged.root / "fleet/holds.yaml").write_text(holds)
        assert merged.call("plan", "--check").code == 0

    def test_another_desired_state_makes_it_not_current(self, merged: Fleet) -> None:
        merged.edit("fleet/aliases.yaml", lambda text: text.replace("priority: 100", "priority: 101"))
        self.refusal(merged, "notCurrent", "/spec/inputs/desired")

    def test_a_plan_edited_by_hand_is_seen(self, merged: Fleet) -> None:
        merged.edit(PLAN, lambda text: text.replace("timeoutSeconds: 30", "timeoutSeconds: 31", 1))
        self.refusal(merged, "editedPlan", "/metadata/id")

    def test_a_forged_step_does_not_re_derive(self, merged: Fleet) -> None:
        forge(merged, r"timeoutSeconds: 30\b", "timeoutSeconds: 31")
        ran = merged.call("plan", "--check", "--json")
        found = ran.json["error"]["findings"][0]
        assert (ran.code, found["code"]) == (5, "notAuthentic")
        assert re.fullmatch(r"/spec/steps/\d+/timeoutSeconds", found["pointer"])
        assert (found["wanted"], found["found"]) == ("30", "31")
        assert found["line"] > 1

    def test_a_what_if_plan_is_refused(self, merged: Fleet) -> None:
        merged.call("plan", "--offline", "--effort", "normal", "--out", str(merged.root / PLAN))
        self.refusal(merged, "whatIfPlan", "/spec/inputs/whatIf")

    def test_an_inventory_that_the_history_never_had(self, merged: Fleet) -> None:
        other = digest({"not": "there"})
        forge(merged, r"inventory: \"?sha256:[0-9a-f]+\"?", f'inventory: "{other}"')
        self.refusal(merged, "inventoryNotFound", "/spec/inputs/inventory")

    def test_no_plan_and_something_to_do(self, fleet: Fleet) -> None:
        fleet.cordon("spark-node-01")
        ran = fleet.call("plan", "--check")
        assert ran.code == 5
        assert "there is no committed plan" in ran.err
        assert "plan --write" in ran.err

    def test_an_unusable_plan_is_no_matter_when_nothing_is_to_do(self, fleet: Fleet) -> None:
        (fleet.root / PLAN).write_text("<<<<<<< HEAD\n")
        assert fleet.call("plan", "--check").code == 0


class TestOnto:
    """Two pull requests at once: the second's plan conflicts, rightly, and is made anew across the conflict."""

    @pytest.fixture
    def conflict(self, fleet: Fleet) -> Fleet:
        fleet.git("switch", "--quiet", "--create", "second")
        fleet.cordon("macbook-local")
        fleet.call("plan", "--write")
        fleet.commit("Cordon the Mac")
        fleet.git("switch", "--quiet", "main")
        fleet.cordon("spark-node-01")
        fleet.call("plan", "--write")
        fleet.commit("Cordon the first Spark")
        fleet.git("switch", "--quiet", "second")
        return fleet

    def test_before_the_merge_it_refuses(self, conflict: Fleet) -> None:
        before = conflict.read(PLAN)
        ran = conflict.call("plan", "--write", "--onto", "main")
        assert ran.code == 5
        assert "git merge main" in ran.err
        assert conflict.read(PLAN) == before

    @pytest.mark.parametrize("way", ["merge", "rebase"])
    def test_across_the_conflict_it_plans_both(self, conflict: Fleet, way: str) -> None:
        conflict.git(way, "main", ok=False)
        assert "<<<<<<<" in conflict.read(PLAN)
        ran = conflict.call("plan", "--write", "--onto", "main")
        assert ran.code == 0, ran.err
        assert "<<<<<<<" not in conflict.read(PLAN)
        conflict.git("add", "--all")
        conflict.git("-c", "core.editor=true", way, "--continue")
        assert conflict.call("plan", "--check").out == f"{PLAN} is authentic and current.\n"
        changed = {change.alias for change in planned(conflict).diff.routes}
        assert {"cognition", "embeddings"} <= changed

    def test_a_conflict_in_the_inventory_is_settled_for_the_branch(self, conflict: Fleet) -> None:
        conflict.edit(INVENTORY, lambda text: text.replace("freeGb: 800", "freeGb: 790"))
        conflict.commit("Observe from here")
        conflict.git("switch", "--quiet", "main")
        conflict.edit(INVENTORY, lambda text: text.replace("freeGb: 800", "freeGb: 780"))
        conflict.commit("Observe the pool")
        conflict.git("switch", "--quiet", "second")
        conflict.git("merge", "main", ok=False)
        assert "<<<<<<<" in conflict.read(INVENTORY)
        ran = conflict.call("plan", "--write", "--onto", "main")
        assert ran.code == 0, ran.err
        assert f"took {INVENTORY} from main" in ran.err
        assert conflict.read(INVENTORY) + "" == conflict.git("show", f"main:{INVENTORY}") + "\n"
        conflict.commit("Merge main")
        assert conflict.call("plan", "--check").code == 0


def test_diff_of_a_revision(fleet: Fleet) -> None:
    missing = fleet.call("diff")
    assert (missing.code, missing.out) == (5, "")
    fleet.cordon("spark-node-01")
    fleet.call("plan", "--write")
    first = fleet.commit("Cordon the first Spark")
    shown = fleet.call("diff").out
    fleet.cordon("macbook-local")
    fleet.call("plan", "--write")
    assert fleet.call("diff").out != shown
    assert fleet.call("diff", first).out == shown
    assert fleet.call("diff", "no-such-rev").code == 2


def test_planning_reads_no_clock_no_order_and_no_place(fleet: Fleet, tmp_path: Path) -> None:
    fleet.cordon("spark-node-01", "spark-node-02")
    made = {
        run("plan", "--offline", "--out", "-", cwd=fleet.root, env=env).out
        for env in (
            {"PYTHONHASHSEED": "1", "TZ": "UTC"},
            {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "COLUMNS": "40", "LC_ALL": "C"},
        )
    }
    assert len(made) == 1
