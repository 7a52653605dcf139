"""`recipe import|export|list`, as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lloom_gitops.cli.main import main

LLOOM = Path(__file__).parent / "lloom"


class Said:
    """A command's exit code and what it wrote."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: object) -> Said:
        code = main(["--repo", str(tmp_path), "recipe", *map(str, words)])
        return Said(code, *capsys.readouterr())

    return call


def test_import_then_export_gives_the_file_back(run: Any, tmp_path: Path) -> None:
    imported = run("import", LLOOM / "process.json")
    assert (imported.code, imported.out, imported.err) == (0, "", "recipes/mac-small-chat.yaml written\n")
    exported = run("export", "mac-small-chat")
    assert json.loads(exported.out) == json.loads((LLOOM / "process.json").read_text())
    by_file = run("export", tmp_path / "recipes" / "mac-small-chat.yaml", "--out", tmp_path / "back.json")
    assert by_file.code == 0
    assert (tmp_path / "back.json").read_text() == exported.out


def test_the_same_import_twice_does_nothing(run: Any) -> None:
    run("import", LLOOM / "pair.json")
    again = run("import", LLOOM / "pair.json")
    assert (again.code, again.err) == (0, "recipes/two-nodes-big-chat.yaml is up to date\n")


def test_an_edited_file_is_not_replaced_unless_told(run: Any, tmp_path: Path) -> None:
    run("import", LLOOM / "pair.json")
    file = tmp_path / "recipes" / "two-nodes-big-chat.yaml"
    file.write_text(file.read_text() + "# agreed on Monday\n")
    refused = run("import", LLOOM / "pair.json")
    assert refused.code == 2
    assert "is there already" in refused.err
    assert file.read_text().endswith("# agreed on Monday\n")
    assert run("import", LLOOM / "pair.json", "--force").code == 0
    assert "Monday" not in file.read_text()


def test_dry_run_shows_and_writes_nothing(run: Any, tmp_path: Path) -> None:
    said = run("import", LLOOM / "bare.json", "--dry-run")
    assert "metadata: {name: bare}" in said.out
    assert said.err == "recipes/bare.yaml would be written\n"
    assert [*tmp_path.iterdir()] == []


def test_out_to_stdout(run: Any, tmp_path: Path) -> None:
    said = run("import", LLOOM / "bare.json", "--out", "-")
    assert said.out.startswith("# yaml-language-server: $schema=../schemas/recipe.v1.schema.json\napiVersion:")
    assert [*tmp_path.iterdir()] == []


BAD: dict[str, tuple[bytes, str, str]] = {
    "no JSON": (b'{\n  "id": x}', "jsonSyntax", ":2:9"),
    "cut off": (b'{"id": "a",\n', "jsonSyntax", ":2:1"),
    "more than one": (b"{}\n{}", "jsonSyntax", ":2:1"),
    "a key twice": (b'{"id": "a",\n "id": "b"}', "duplicateKey", ":2:2"),
    "NaN": (b'{"id": NaN}', "jsonSyntax", ":1:8"),
    "beyond a double": (b'{"id": 1e999}', "jsonSyntax", ":1:8"),
    "half a character": (b'{"id":\n"\\ud800"}', "loneSurrogate", ":2:1"),
    "too deep": (b"[" * 100 + b"]" * 100, "jsonSyntax", ":1:34"),
    "not UTF-8": (b'{"id": "\xff"}', "notUtf8", "bad.json"),
    "no recipe": (
        b'{"schemaVersion": 1,\n "id": "a/b", "name": "", "backend": {"id": "x"},\n "models": []}',
        "lloomRecipe",
        ":2:2",
    ),
    "a model without artifact": (
        b'{"schemaVersion": 1, "id": "a", "name": "", "backend": {"id": "x"}, "models": [\n {}]}',
        "lloomRecipe",
        ":2:2",
    ),
    "more digits than YAML keeps": (
        b'{"schemaVersion": 1, "id": "a", "name": "", "backend": {"id": "x"}, "models": [], "x": 1e200}',
        "numberRefused",
        "bad.json",
    ),
    "a key in clear": (
        b'{"schemaVersion": 1, "id": "a", "name": "", "backend": {"id": "x", "apiKey": "sk-1"}, "models": []}',
        "keyInDocument",
        ":1:68",
    ),
}


@pytest.mark.parametrize(("content", "code", "place"), BAD.values(), ids=BAD)
def test_bad_input_is_told_with_its_place(run: Any, tmp_path: Path, content: bytes, code: str, place: str) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    said = run("import", file)
    assert (said.code, said.out) == (3, "")
    assert f"error[{code}]" in said.err
    assert place in said.err
    assert [*tmp_path.iterdir()] == [file], "nothing is written"


def test_a_file_that_is_not_there(run: Any) -> None:
    assert run("import", "nowhere.json").code == 2
    assert run("export", "nowhere").code == 2


def test_a_contradiction_is_told_with_its_line(run: Any, tmp_path: Path) -> None:
    run("import", LLOOM / "pair.json")
    file = tmp_path / "recipes" / "two-nodes-big-chat.yaml"
    lines = file.read_text().replace("CUTE_DSL_ARCH: sm_121a", "CUTE_DSL_ARCH: sm_120a").splitlines()
    file.write_text("\n".join(lines) + "\n")
    line = next(at for at, text in enumerate(lines, 1) if "env:" in text)
    said = run("export", "two-nodes-big-chat")
    assert (said.code, said.out) == (3, "")
    assert "recipeLloomDiffers" in said.err
    assert f"recipes/two-nodes-big-chat.yaml:{line}:" in said.err


def test_list(run: Any, tmp_path: Path) -> None:
    assert "no recipes" in run("list").err
    for name in ("pair", "choice", "bare"):
        run("import", LLOOM / f"{name}.json")
    rows = [line.split() for line in run("list").out.splitlines()]
    assert rows[0] == ["ID", "VERSION", "NODES", "GB", "MODELS"]
    assert rows[1][:4] == ["bare", "1", "1", "unknown"]
    assert rows[2][:6] == ["one-node-choice", "1", "1", "64,", "48,", "30"]
    assert rows[3] == ["two-nodes-big-chat", "2", "2", "96", "big-300b", "(chat)"]


def test_list_tells_what_it_leaves_out(run: Any, tmp_path: Path) -> None:
    run("import", LLOOM / "bare.json")
    (tmp_path / "recipes" / "broken.yaml").write_text("kind: Recipe\n")
    said = run("list")
    assert said.code == 3
    assert "bare" in said.out
    assert "recipes/broken.yaml" in said.err


def test_json_answers(run: Any) -> None:
    imported = json.loads(run("import", LLOOM / "bare.json", "--json").out)
    assert (imported["file"], imported["written"]) == ("recipes/bare.yaml", True)
    listed = json.loads(run("list", "--json").out)
    assert listed["formatVersion"] == imported["formatVersion"]
    assert [row["id"] for row in listed["recipes"]] == ["bare"]
    assert json.loads(run("export", "bare", "--json").out)["recipe"]["id"] == "bare"
