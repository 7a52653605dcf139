"""The plan's bytes depend on the desired state and the inventory alone, whatever process made it, where and how."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ruamel.yaml import YAML

from lloom_gitops.sim.demo_fleet import cordon
from tests.pools import REPO

from .world import PLAN, environment


def lay_out(folder: Path, *, seed: int | None) -> None:
    """The fleet with its pair cordoned; with a seed, files come in another order and so do the fields of each."""
    files = [path for part in ("fleet", "recipes") for path in sorted((REPO / part).rglob("*.yaml"))]
    chance = Random(seed or 0)
    if seed is not None:
        chance.shuffle(files)
    for path in files:
        name = path.relative_to(REPO)
        if name.as_posix() in (PLAN, "fleet/status.yaml"):
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8")
        (folder / name).write_text(text if seed is None else shuffled(text, chance), "utf-8")
    for node in ("spark-node-01", "spark-node-02"):
        path = folder / f"fleet/nodes/{node}.yaml"
        if seed is None:
            cordon(folder, node, "new firmware")
        else:
            document = read(path.read_text("utf-8"))
            document["spec"] = {"reason": "new firmware", "state": "cordon", **document["spec"]}
            path.write_text(json.dumps(document), "utf-8")


def read(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def shuffled(text: str, chance: Random) -> str:
    """A document with the fields of every mapping in another order; lists keep theirs, which means something."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            names = list(value)
            chance.shuffle(names)
            return {name: turned(value[name]) for name in names}
        return [turned(each) for each in value] if isinstance(value, list) else value

    return json.dumps(turned(read(text)), indent=1, default=str)  # JSON is YAML; dates are words


def plan_of(folder: Path, env: dict[str, str]) -> bytes:
    words = ["--repo", str(folder), "plan", "--offline", "--out", "-"]
    made = subprocess.run(
        [sys.executable, "-m", "lloom_gitops.cli.main", *words], env=env, capture_output=True, timeout=60
    )
    assert made.returncode == 0, made.stderr.decode()
    return made.stdout


@pytest.mark.parametrize(
    ("seed", "process"),
    [
        pytest.param(1, {"PYTHONHASHSEED": "1"}, id="shuffled input"),
        pytest.param(2, {"PYTHONHASHSEED": "4242"}, id="shuffled otherwise"),
        pytest.param(None, {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati"}, id="far away"),
        pytest.param(None, {"LC_ALL": "C", "TZ": "America/St_Johns", "PYTHONUTF8": "0"}, id="plain locale"),
        pytest.param(3, {"LC_ALL": "POSIX", "TZ": "UTC", "PYTHONOPTIMIZE": "2"}, id="everything else"),
    ],
)
def test_a_plan_has_the_same_bytes(tmp_path: Path, seed: int | None, process: dict[str, str]) -> None:
    usual, other = tmp_path / "usual", tmp_path / "other place"
    lay_out(usual, seed=None)
    lay_out(other, seed=seed)
    env = environment(tmp_path, {"PYTHONHASHSEED": "0"})
    first = plan_of(usual, env)
    assert b"start:qwen38-27b-03" in first
    assert plan_of(other, {**env, **process}) == first


def test_a_shuffled_fleet_is_another_text(tmp_path: Path) -> None:
    lay_out(tmp_path / "a", seed=None)
    lay_out(tmp_path / "b", seed=1)
    name = "fleet/aliases.yaml"
    one, other = (read((tmp_path / folder / name).read_text("utf-8")) for folder in ("a", "b"))
    assert one == other
    assert list(one["spec"]["aliases"]) != list(other["spec"]["aliases"])
