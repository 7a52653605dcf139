"""`apply` and `agent` as processes: exit codes, output, signals, and what never leaves the machine."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable

import pytest

from lloom_gitops.model.errors import Conflict, DocumentError, Unreachable
from lloom_gitops.sim.pool import SIM_KEY_ENV

from .conftest import wait_for
from .fleet import PLAN, Fleet, git

Make = Callable[..., Fleet]
STANDALONE = ["spark-node-03/qwen3.8-27b", "cloud/openrouter/q38fn"]


def cordon(fleet: Fleet) -> None:
    fleet.cordon_pair()
    fleet.plan_write()
    fleet.commit("Cordon the pair")


def test_apply_carries_out_the_merged_plan(fleet: Make) -> None:
    here = fleet()
    cordon(here)
    git(here.home, "pull", "-q")
    before = here.tip()
    dry = here.command("apply", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "the reviewed plan" in dry.stdout
    assert here.tip() == before
    assert here.said() is None, "nothing is written anywhere"
    done = here.command("apply")
    assert done.returncode == 0, done.stderr
    assert "waits for a person: stop:qwen38-pair" in done.stdout
    assert "[1/5] done start:qwen38-27b-03" in done.stderr.splitlines()
    assert here.route("cognition") == STANDALONE
    assert here.trailers()["Trigger"] == "manual"
    assert git(here.home, "rev-parse", "HEAD") == here.tip(), "the work tree follows"
    assert git(here.home, "status", "--porcelain") == ""
    again = here.command("apply", "--json")
    assert again.returncode == 0
    answer = json.loads(again.stdout)
    assert answer["formatVersion"] == "1.0"
    assert answer["turn"]["way"] == "nothing"
    _nothing_secret(here, dry.stdout + dry.stderr + done.stdout + done.stderr + again.stdout + again.stderr)


def _nothing_secret(fleet: Fleet, said: str) -> None:
    """No key and no address in what was written or said (the fleet's own documents name addresses)."""
    written = [said]
    for ref in git(fleet.remote, "for-each-ref", "--format=%(refname)").splitlines():
        written.append(git(fleet.remote, "log", "--format=%B", ref))
        for path in git(fleet.remote, "ls-tree", "-r", "--name-only", ref).splitlines():
            if path in (PLAN, "fleet/status.yaml", "fleet/observed/inventory.yaml", "lease.json"):
                written.append(fleet.show(ref, path) or "")
    for path in (fleet.room / "state").iterdir():
        written.append(path.read_text())
    text = "\n".join(written)
    assert fleet.pool.key not in text
    assert "http://" not in text
    assert str(fleet.room) not in text


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda here: here.cordon_pair(), "noPlan"),
        (lambda here: (cordon(here), here.set_state("macbook-local", "cordon")), "notCurrent"),
        (
            lambda here: (here.cordon_pair(), here.plan_write(), here.edit(PLAN, r"levels: \[0", "levels: [7")),
            "notAuthentic",
        ),
        (
            lambda here: (here.write("fleet/pool.yaml", pool_without_stops()), here.cordon_pair(), here.plan_write()),
            "overStops",
        ),
    ],
    ids=["no plan", "not current", "edited by hand", "over the stop cap"],
)
def test_apply_refuses_what_nobody_reviewed(fleet: Make, change: Callable[[Fleet], object], code: str) -> None:
    here = fleet()
    change(here)
    here.commit("Change something")
    git(here.home, "pull", "-q")
    before, starts = here.tip(), here.lane("spark-node-03", "qwen38-27b-03")["starts"]
    done = here.command("apply", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, code), done.stdout
    assert here.tip() == before
    assert here.lane("spark-node-03", "qwen38-27b-03")["starts"] == starts


def pool_without_stops() -> str:
    from .fleet import pool_text

    return pool_text(more="  apply: {maxStops: 0}\n")


def test_apply_refuses_what_is_not_on_the_protected_branch(fleet: Make) -> None:
    here = fleet()
    git(here.home, "commit", "-q", "--allow-empty", "-m", "Mine")
    done = here.command("apply", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (5, "notMerged")


def test_a_confirmation_lets_the_stops_happen(fleet: Make) -> None:
    here = fleet(more="  apply: {maxStops: 0}\n")
    cordon(here)
    report = here.turn()
    assert (report.exit_code, report.because["reason"]) == (5, "overStops")
    text = "apiVersion: lloom-gitops/v1\nkind: Confirmations\nmetadata: {name: confirmations}\nspec:\n"
    here.write("fleet/confirmations.yaml", text + f'  - {{plan: "{report.plan}", allows: [stops], reason: agreed}}\n')
    here.commit("Confirm the stop")
    assert here.turn().result == "waiting"


# The outside is away -------------------------------------------------------------------------------------------------


def test_no_remote_no_action(fleet: Make) -> None:
    here = fleet()
    cordon(here)
    here.remote.rename(here.room / "away.git")
    with pytest.raises(Unreachable) as error:
        here.turn()
    assert error.value.exit_code == 7
    assert here.route("cognition")[0] == "qwen3.8-flash-next"


def test_no_gateway_no_plan(fleet: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    here = fleet()
    cordon(here)
    before = here.tip()
    local = here.room / "agent.toml"
    dead = "".join(f'{node} = "http://127.0.0.1:9"\n' for node in here.pool.urls)
    local.write_text(f"[endpoints]\n{dead}")
    done = here.command("agent", "--once", env={"LLOOM_GITOPS_CONFIG": str(local)})
    assert done.returncode == 7, done.stderr
    assert here.tip() == before
    said = here.said()
    assert said is not None
    assert (said.conditions.ready, said.conditions.reason) == (False, "NoGateway")


def test_broken_documents_are_refused_with_their_place(fleet: Make) -> None:
    here = fleet()
    here.write(
        "fleet/pins.yaml", "apiVersion: lloom-gitops/v1\nkind: Pins\nmetadata: {name: pins}\nspec: {a: {b: c}}\n"
    )
    here.commit("Break something")
    with pytest.raises(DocumentError) as error:
        here.turn()
    assert error.value.exit_code == 3
    assert {finding.file for finding in error.value.findings} == {"fleet/pins.yaml"}
    said = here.said()
    assert said is not None
    assert said.conditions.reason == "Documents"


def test_a_lease_in_another_hand(fleet: Make) -> None:
    from lloom_gitops.agent.lease import Lease
    from lloom_gitops.cli.agent_world import agent_world

    here = fleet()
    cordon(here)
    other = here.settings(state_dir=str(here.room / "other-state"), name="spare")
    with agent_world(here.home, other, stop=lambda: None) as (_, lease):
        assert isinstance(lease, Lease)
        lease.take()
        with pytest.raises(Conflict) as error:
            here.turn()
        assert error.value.exit_code == 6
        assert "spare" in error.value.message
    assert here.route("cognition")[0] == "qwen3.8-flash-next"
    assert here.turn().result == "waiting", "given back, it is free at once"
    status = here.status()
    assert status is not None
    assert status.agent.epoch == 2, "each holder has an epoch of its own"


# The service ---------------------------------------------------------------------------------------------------------


def test_the_service_applies_what_is_merged_and_ends_when_asked(fleet: Make) -> None:
    here = fleet(more="")
    here.edit("fleet/pool.yaml", r"mode: 'advise'", "mode: 'advise', intervalSeconds: 5")
    here.commit("Look often")
    process = subprocess.Popen(here.argv("agent"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: here.said() is not None, 60)
        cordon(here)
        wait_for(lambda: here.status() is not None, 60)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert out.splitlines()[0].startswith("nothing to do")
    assert "waiting: 4 of 5 steps done" in out
    assert json.loads(here.show("refs/lloom/lease", "lease.json") or "")["ttlSeconds"] == 0, "the lease is given back"
    assert SIM_KEY_ENV not in out
