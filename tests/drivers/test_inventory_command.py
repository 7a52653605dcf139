"""`lloom-gitops inventory` as people run it: in a repository of their own, against a running pool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lloom_gitops.codec import dump_document, load_document
from lloom_gitops.model.document import Kind, Metadata
from lloom_gitops.sim.pool import SimPool
from tests.pools import REPO, fleet_files, three_spark

from .conftest import THIRD, running

FILE = "fleet/observed/inventory.yaml"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimPool]:
    with running(tmp_path_factory.mktemp("pool"), "newer", THIRD) as found:
        yield found


@pytest.fixture
def repo(tmp_path: Path, pool: SimPool) -> Path:
    """The three-Spark fleet as somebody's own repository; only the third Spark answers."""
    for name, data in fleet_files(REPO).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for path in (tmp_path / "fleet/nodes").iterdir():
        url = pool.urls.get(path.stem, "http://127.0.0.1:9")
        lines = path.read_text().splitlines()
        path.write_text("\n".join(f"  endpoint: {url}" if "endpoint:" in line else line for line in lines) + "\n")
    lane = tmp_path / "fleet/lanes/qwen38-pair.yaml"
    lane.write_text(lane.read_text().replace("http://10.10.10.1:8205", "http://127.0.0.1:9"))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def run(repo: Path, pool: SimPool, *words: str, key: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from lloom_gitops.cli.main import main; sys.exit(main())"]
    return subprocess.run(
        [*command, "--repo", str(repo), *words],
        env={**os.environ, "LLOOM_CLUSTER_KEY": pool.key if key is None else key},
        capture_output=True,
        text=True,
    )


def test_data_on_stdout_and_the_rest_on_stderr(repo: Path, pool: SimPool) -> None:
    (repo / FILE).unlink()
    got = run(repo, pool, "inventory")
    assert got.returncode == 0, got.stderr
    seen = load_document(Kind.INVENTORY, got.stdout.encode(), "stdout").spec
    assert {name: node.seen.value for name, node in seen.nodes.items()} == {
        "macbook-local": "unknown",
        "spark-node-01": "unknown",
        "spark-node-02": "unknown",
        THIRD: "present",
    }
    assert got.stdout == dump_document(Kind.INVENTORY, Metadata(name="inventory"), seen)
    assert "asking 4 gateways" in got.stderr
    assert "spark-node-01: nothing listens at the endpoint" in got.stderr
    assert f"--write would write {FILE}" in got.stderr
    assert not (repo / FILE).exists()
    for secret in (pool.key, "127.0.0.1", str(repo)):
        assert secret not in got.stdout
        assert secret not in got.stderr


def test_write_only_what_matters(repo: Path, pool: SimPool) -> None:
    committed = (repo / FILE).read_bytes()
    # Three nodes are silent and the pair is down: the node entries stay, the pair's state is news.
    got = run(repo, pool, "inventory", "--write")
    assert got.returncode == 0, got.stderr
    assert got.stdout == ""
    assert f"wrote {FILE}: lanes/qwen38-pair" in got.stderr
    written = (repo / FILE).read_bytes()
    assert written != committed
    assert load_document(Kind.INVENTORY, written, FILE).spec.lanes["qwen38-pair"].state.value == "stopped"
    again = run(repo, pool, "inventory", "--write")
    assert "up to date" in again.stderr
    assert (repo / FILE).read_bytes() == written
    assert sorted(path.name for path in (repo / FILE).parent.iterdir()) == ["inventory.yaml"]


def test_one_node_alone(repo: Path, pool: SimPool) -> None:
    _, committed = three_spark()
    got = run(repo, pool, "--json", "inventory", "--node", THIRD)
    assert got.returncode == 0, got.stderr
    answer = json.loads(got.stdout)
    assert answer["formatVersion"] == "1.0"
    assert (answer["answered"], answer["notes"], answer["written"]) == ([THIRD], [], False)
    assert answer["inventory"]["nodes"]["spark-node-01"]["platform"] == "linux-arm64"
    assert "seen" not in answer["inventory"]["nodes"]["spark-node-01"]
    assert set(answer["inventory"]["lanes"]) == set(committed.lanes)


@pytest.mark.parametrize(
    ("words", "key", "code", "says"),
    [
        pytest.param(["inventory"], "wrong", 7, "no gateway could be read", id="a wrong key"),
        pytest.param(["inventory", "--node", "spark-node-01"], None, 7, "nothing listens", id="nobody there"),
        pytest.param(["inventory", "--node", "elsewhere"], None, 2, "no such node", id="an unknown node"),
    ],
)
def test_nothing_is_said_of_a_pool_that_nobody_could_read(
    repo: Path, pool: SimPool, words: list[str], key: str | None, code: int, says: str
) -> None:
    before = (repo / FILE).read_bytes()
    got = run(repo, pool, *words, "--write", key=key)
    assert got.returncode == code, got.stderr
    assert got.stdout == ""
    assert says in got.stderr
    assert (repo / FILE).read_bytes() == before
    assert "Traceback" not in got.stderr
