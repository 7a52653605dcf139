"""Turns on pools that are not as they should be: gateways of the oldest build, and a node that dies."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lloom_gitops.control.lifecycle import Way
from lloom_gitops.model.words import Outcome, Result
from lloom_gitops.sim.pool import start_pool
from lloom_gitops.sim.three_spark import three_spark_spec

from .conftest import TIME_SCALE
from .fleet import Fleet, PairServer, environment, three_spark_documents

LANE = "qwen38-27b-03"


def test_the_oldest_builds(tmp_path: Path, pair: PairServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One target an alias, residency only in each gateway's own file: the plan says so, and the rest is carried out."""
    with start_pool(three_spark_spec(build="snapshot", time_scale=TIME_SCALE), tmp_path / "pool") as pool:
        for name, value in environment(tmp_path, pool).items():
            monkeypatch.setenv(name, value)
        here = Fleet(tmp_path, pool, three_spark_documents(pool, pair, plan="agent"))
        here.edit("fleet/aliases.yaml", r"residency: preferred", "residency: auto")  # a word that old builds don't know
        here.commit("Ask only for what this build can do")
        settled = here.turn()  # what an old build can't express is planned down to what it can
        assert settled.exit_code == 0, settled.says
        here.cordon_pair()
        here.commit("Cordon the pair")
        report = here.turn()
        assert (report.way, report.result) == (Way.PLANNED, Result.WAITING), report
        assert report.steps[f"start:{LANE}"].outcome is Outcome.DONE
        assert report.steps[f"residency:{LANE}"].outcome is Outcome.WAITING
        assert here.lane("spark-node-03", LANE)["healthy"] is True
        assert here.lane("spark-node-03", LANE)["keepWarm"] is False, "a person's to set, on that node"
        assert here.route("cognition") == ["spark-node-03/qwen3.8-27b"]
        again = here.turn()
        assert again.way is Way.NOTHING
        assert "waits for" in again.says


def test_a_node_that_dies(fleet: Callable[..., Fleet]) -> None:
    """Unreadable is no evidence; once it is lost, auto moves what it can, and moves it back when the node is back."""
    here = fleet(mode="auto", more="  liveness: {suspectSeconds: 1, lostSeconds: 3}\n")
    assert here.turn().way is Way.NOTHING
    here.pool.kill("spark-node-03")
    before = here.tip()
    doubtful = here.turn()
    assert doubtful.way is Way.NOTHING, doubtful.says
    assert here.tip() == before
    time.sleep(3.2)
    lost = here.turn()
    assert (lost.way, lost.result) == (Way.PLANNED, Result.SUCCEEDED), lost
    assert here.trailers()["Trigger"] == "drift"
    assert here.lane("macbook-local", "mac-embedding")["healthy"] is True
    assert here.route("embeddings")[0] == "macbook-local/qwen3-embedding-4b"
    status = here.status()
    assert status is not None
    assert status.aliases["embeddings"].serving == "mac/qwen3-embedding-4b"
    here.pool.start("spark-node-03")
    back = here.turn()
    assert (back.way, back.result) == (Way.PLANNED, Result.SUCCEEDED), back
    assert here.route("embeddings")[0] == "spark-node-03/qwen3-embedding-4b"
    assert here.turn().way is Way.NOTHING
