"""An installed wheel is the whole program: the demo's fleet and the schemas come with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pools import REPO

from .world import environment

LIMIT_SECONDS = 180


@pytest.mark.slow
def test_the_demo_of_an_installed_wheel(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(REPO)], check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True, cwd=tmp_path)
    env = environment(tmp_path, {"PYTHONPATH": str(site)})
    where = [sys.executable, "-c", "import lloom_gitops; print(lloom_gitops.__file__)"]
    found = subprocess.run(where, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(site)
    assert (site / "lloom_gitops/_demo/fleet/pool.yaml").is_file()
    words = [sys.executable, "-m", "lloom_gitops.cli.main", "demo", "--speed", "300"]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert "cognition is answered by qwen3.8-27b" in done.stdout
