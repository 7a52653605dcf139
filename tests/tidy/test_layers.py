"""A module imports only from rows below it (docs/concepts.md), and decisions read no world."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SETTINGS = (REPO / "pyproject.toml").read_text("utf-8")
LAYERS = [
    package
    for row in tomllib.loads(SETTINGS)["tool"]["importlinter"]["contracts"][0]["layers"]
    for package in row.split(" | ")
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    script = "import sys; sys.path.insert(0, ''); from importlinter.cli import lint_imports as lint; sys.exit(lint())"
    return subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=120)


def test_the_layers_hold() -> None:
    ran = lint(REPO)
    assert ran.returncode == 0, ran.stdout


def test_every_package_is_a_layer() -> None:
    packages = {path.parent.name for path in (REPO / "lloom_gitops").glob("*/__init__.py")}
    assert packages <= set(LAYERS)


@pytest.mark.parametrize(
    ("module", "imports", "contract"),
    [
        pytest.param("model/plan.py", "import lloom_gitops.planner", "only from rows below it BROKEN", id="upwards"),
        pytest.param("drivers/a.py", "import lloom_gitops.gitstore", "only from rows below it BROKEN", id="sideways"),
        pytest.param("planner/a.py", "import time", "Decisions read no clock", id="a decision reads the clock"),
        pytest.param("cli/a.py", "import lloom_gitops.planner", None, id="downwards is fine"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, module: str, imports: str, contract: str | None) -> None:
    settings = SETTINGS[SETTINGS.index("[tool.importlinter]") :]
    (tmp_path / "pyproject.toml").write_text(settings)
    package = tmp_path / "lloom_gitops"
    for layer in LAYERS:
        (package / layer).mkdir(parents=True)
        (package / layer / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "ports").rename(package / "was-a-folder")
    (package / "ports.py").touch()
    (package / module).write_text(f"{imports}\n")
    ran = lint(tmp_path)
    assert (ran.returncode == 0) == (contract is None), ran.stdout
    assert contract is None or contract in ran.stdout
