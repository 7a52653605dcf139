"""`check` as people and workflows call it: bad input is a finding with its place, exit 3, and nothing is written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.checks_documents.test_golden import HERE

Change = Callable[[Path], object]


def run(repo: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lloom_gitops.cli.main", "--repo", str(repo), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "base", tmp_path / "repo"))


def state(folder: Path) -> dict[str, str]:
    """Every entry below a folder with its content, links as links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path)] = f"link {path.readlink()}"
        elif path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[str(path)] = "other"
    return found


def write(path: str, text: str | bytes) -> Change:
    def change(repo: Path) -> None:
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)

    return change


def link(path: str, target: str) -> Change:
    def change(repo: Path) -> None:
        shutil.rmtree(repo / path, ignore_errors=True) if (repo / path).is_dir() else (repo / path).unlink()
        (repo.parent / "outside").mkdir()
        (repo.parent / "outside" / "secret.yaml").write_text("top secret")
        (repo / path).symlink_to(target)

    return change


BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 8)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
NODE = "apiVersion: lloom-gitops/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{}}\n"

BAD_INPUT = {
    # id: (change, code, file, line)
    "broken YAML": (write("fleet/pins.yaml", "spec: [1, 2\n"), "yamlSyntax", "fleet/pins.yaml", 2),
    "unknown kind": (
        write("fleet/nodes/n3.yaml", NODE.format(kind="Nod", name="n3")),
        "unknownKind",
        "fleet/nodes/n3.yaml",
        2,
    ),
    "10 MB": (write("fleet/pins.yaml", b"# " + b"x" * 10_000_000), "fileTooLarge", "fleet/pins.yaml", 0),
    "20 MB": (write("fleet/pins.yaml", b"# " + b"x" * 20_000_000), "fileTooLarge", "fleet/pins.yaml", 0),
    "alias bomb": (write("fleet/aliases.yaml", BOMB), "tooManyAliases", "fleet/aliases.yaml", 5),
    "deep nesting": (write("fleet/pins.yaml", "[" * 500_000), "yamlSyntax", "fleet/pins.yaml", 1),
    "link out of the repository": (
        link("fleet/pins.yaml", "../../outside/secret.yaml"),
        "symbolicLink",
        "fleet/pins.yaml",
        0,
    ),
    "folder linked out of the repository": (link("fleet/lanes", "../../outside"), "symbolicLink", "fleet/lanes", 0),
    "fleet linked out of the repository": (link("fleet", "../outside"), "symbolicLink", "fleet", 0),
    "name with control characters": (
        write("fleet/nodes/n3.yaml", NODE.format(kind="Node", name='"n\\u0007\\e[31m3"')),
        "wrongForm",
        "fleet/nodes/n3.yaml",
        3,
    ),
    "control characters": (write("fleet/pins.yaml", "spec: \x1b[31m\n"), "controlCharacter", "fleet/pins.yaml", 1),
    "pipe": (lambda repo: os.mkfifo(repo / "fleet" / "nodes" / "n3.yaml"), "notAFile", "fleet/nodes/n3.yaml", 0),
    "repository inside": (write("fleet/lanes/.git", "gitdir: elsewhere"), "notAFile", "fleet/lanes", 0),
    "no pool": (lambda repo: (repo / "fleet" / "pool.yaml").unlink(), "poolMissing", "fleet/pool.yaml", 0),
    "key for a name": (
        write("fleet/nodes/n3.yaml", NODE.format(kind="Node", name="n3").replace("{}", "{apiKeyEnv: sk-abcdefgh1234}")),
        "secretForName",
        "fleet/nodes/n3.yaml",
        4,
    ),
}


@pytest.mark.parametrize(("change", "code", "file", "line"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input(repo: Path, change: Change, code: str, file: str, line: int) -> None:
    change(repo)
    before = state(repo.parent)
    ended = run(repo, "check", "--json")
    assert ended.returncode == 3, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    assert answer["formatVersion"].startswith("1.")
    assert (code, file, line) in [(f["code"], f["file"], f["line"]) for f in answer["findings"]]
    assert "top secret" not in ended.stdout
    assert "sk-abcdefgh1234" not in ended.stdout
    assert ended.stderr == ""
    assert state(repo.parent) == before


def test_nothing_is_found(repo: Path) -> None:
    ended = run(repo, "check")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "no findings, 10 files read\n", "")
    assert json.loads(run(repo, "check", "--json").stdout)["findings"] == []


def test_warnings_alone_end_well(repo: Path) -> None:
    (repo / "fleet/nodes/n2.yaml").rename(repo / "fleet/nodes/other.yaml")
    ended = run(repo, "check")
    assert ended.returncode == 0
    assert "warning[nameOfFile]" in ended.stdout


def faulty(repo: Path) -> Path:
    write("fleet/pool.yaml", (repo / "fleet/pool.yaml").read_text().replace("head: n1", "head: n9"))(repo)
    (repo / "fleet/nodes/n2.yaml").rename(repo / "fleet/nodes/other, one.yaml")
    return repo


def test_text_names_place_and_remedy(repo: Path) -> None:
    ended = run(faulty(repo), "check")
    assert ended.returncode == 3
    assert ended.stdout == (
        "warning[nameOfFile]: n2 stands in a file called other, one.yaml\n"
        "  --> fleet/nodes/other, one.yaml\n"
        "  hint: rename the file, so that people find it\n"
        "error[unknownHead]: n9 is not known\n"
        "  --> fleet/pool.yaml:5:3  /spec/head\n"
        "  hint: name a node of `fleet/nodes/`, or declare it\n"
        "1 error, 1 warning in 2 files\n"
    )


def test_github_annotations(repo: Path) -> None:
    ended = run(faulty(repo), "check", "--format", "github")
    assert ended.returncode == 3
    assert ended.stdout.splitlines()[1].startswith("::error file=fleet/pool.yaml,line=5,col=3,title=unknownHead::n9 is")
    assert "file=fleet/nodes/other%2C one.yaml" in ended.stdout.splitlines()[0]


def test_sarif(repo: Path) -> None:
    ended = run(faulty(repo), "check", "--format", "sarif")
    assert ended.returncode == 3
    log = json.loads(ended.stdout)
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    rules = [rule["id"] for rule in one["tool"]["driver"]["rules"]]
    results = one["results"]
    assert [rules[result["ruleIndex"]] for result in results] == ["nameOfFile", "unknownHead"]
    assert [result["level"] for result in results] == ["warning", "error"]
    place = results[1]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "fleet/pool.yaml"
    assert place["region"] == {"startLine": 5, "startColumn": 3}
    assert (
        results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "fleet/nodes/other%2C%20one.yaml"
    )


def test_same_output_whatever_the_locale_and_hash_seed(repo: Path) -> None:
    faulty(repo)
    command = [sys.executable, "-m", "lloom_gitops.cli.main", "--repo", str(repo), "check", "--json"]
    outputs = {
        subprocess.run(command, env=os.environ | extra, capture_output=True, timeout=60).stdout
        for extra in ({"PYTHONHASHSEED": "1", "LC_ALL": "C"}, {"PYTHONHASHSEED": "2", "LC_ALL": "tr_TR.UTF-8"})
    }
    assert len(outputs) == 1
