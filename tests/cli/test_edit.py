"""`pin`, `unpin`, `cordon`, `uncordon`, `drain`, `profile`: people's files edited in place, and nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from .conftest import Fleet

NODE = "fleet/nodes/spark-node-01.yaml"
EMBEDDER = "qwen3-embedding-4b@spark-node-03"


def lines(fleet: Fleet) -> dict[str, list[str]]:
    """What git sees changed in the work tree: removed and added lines by path."""
    found: dict[str, list[str]] = {}
    for line in fleet.git("diff", "--unified=0").splitlines():
        if line.startswith("+++ b/"):
            found[line.removeprefix("+++ b/")] = path = []
        elif line[:1] in ("+", "-") and not line.startswith(("---", "+++")):
            path.append(line)
    return found


EDITS = [
    pytest.param(
        ["cordon spark-node-01 --reason firmware"],
        {NODE: ["+  state: cordon", "+  reason: firmware"]},
        "spark-node-01 is cordoned",
        id="cordon",
    ),
    pytest.param(["drain spark-node-01"], {NODE: ["+  state: drain"]}, "spark-node-01 is to be drained", id="drain"),
    pytest.param(
        ["cordon spark-node-01 --reason firmware", "drain spark-node-01"],
        {NODE: ["+  state: drain", "+  reason: firmware"]},
        "spark-node-01 is to be drained",
        id="cordon, then drain: the reason stays",
    ),
    pytest.param(
        ["drain spark-node-01 --reason firmware", "uncordon spark-node-01"],
        {NODE: ["+  state: serve"]},
        "spark-node-01 serves",
        id="uncordon ends a drain, and its reason",
    ),
    pytest.param(
        [f'pin {EMBEDDER} --residency always --expires 2199-01-31 --reason "a: b"'],
        {
            "fleet/pins.yaml": [
                "-spec: {}",
                "+spec:",
                f'+  {EMBEDDER}: {{residency: always, reason: "a: b", expires: "2199-01-31"}}',
            ]
        },
        "qwen3-embedding-4b is pinned to spark-node-03",
        id="the first pin",
    ),
    pytest.param(
        [f"pin {EMBEDDER} --residency auto --expires 2199-01-31", f"pin {EMBEDDER} --residency always --reason x"],
        {
            "fleet/pins.yaml": [
                "-spec: {}",
                "+spec:",
                f'+  {EMBEDDER}: {{residency: always, reason: x, expires: "2199-01-31"}}',
            ]
        },
        "qwen3-embedding-4b is pinned to spark-node-03",
        id="fields of a pin that is there, in the documented order",
    ),
    pytest.param(
        ["pin qwen3.8-flash-next@spark-node-01+spark-node-02", "unpin qwen3.8-flash-next@spark-node-02+spark-node-01"],
        {},
        "qwen3.8-flash-next is not pinned to spark-node-01+spark-node-02",
        id="a pin over two nodes, taken away with its nodes the other way round",
    ),
    pytest.param(
        ["profile standalone"],
        {"fleet/pool.yaml": ["+  activeProfile: standalone"]},
        "standalone is the active profile",
        id="profile",
    ),
    pytest.param(
        ["profile standalone", "profile --none"],
        {"fleet/pool.yaml": ["+  activeProfile: null"]},
        "no profile is active",
        id="no profile",
    ),
]


@pytest.mark.parametrize(("commands", "changed", "says"), EDITS)
def test_an_edit_is_the_smallest_change(
    fleet: Fleet, commands: Sequence[str], changed: dict[str, list[str]], says: str
) -> None:
    import shlex

    for command in commands:
        ran = fleet.call(*shlex.split(command))
        assert (ran.code, ran.out) == (0, ""), ran.err
    assert f": {says}\nthen:\n  lloom-gitops plan --write\n  git add fleet\n  git commit -m " in ran.err
    assert lines(fleet) == changed
    assert fleet.call("check").code == 0
    bytes_then = {path: (fleet.root / path).read_bytes() for path in changed}
    again = fleet.call(*shlex.split(commands[-1]))
    assert (again.code, again.out) == (0, "")
    assert " already: fleet/" in again.err
    assert {path: (fleet.root / path).read_bytes() for path in changed} == bytes_then


UNKNOWN = [
    pytest.param("cordon spark-node-1", "no declared node 'spark-node-1'", "did you mean spark-node-01", id="node"),
    pytest.param("pin qwen3.8-27b@spark-3", "there is no node 'spark-3'", "spark-node-03", id="node of a pin"),
    pytest.param("pin qwen3.8-27@spark-node-03", "there is no model", "did you mean qwen3.8-27b?", id="model"),
    pytest.param("unpin qwen3.8-27@spark-node-03", "there is no model", "did you mean qwen3.8-27b?", id="no pin"),
    pytest.param(f"pin {EMBEDDER} --recipe embed", "there is no recipe", "recipe list", id="recipe"),
    pytest.param("profile standalon", "there is no profile", "did you mean standalone?", id="profile"),
    pytest.param("profile", "name one profile, or say --none", "", id="no name"),
    pytest.param("profile pair --none", "pair and --none exclude each other", "", id="a name and none"),
    pytest.param("pin qwen3.8-27b", "a pin is MODEL@NODE", "", id="no place"),
    pytest.param("pin qwen3.8-27b@spark-node-03+", "a pin is MODEL@NODE", "", id="half a place"),
    pytest.param(f"pin {EMBEDDER} --expires 2027-02-30", "a day is YYYY-MM-DD", "", id="no such day"),
    pytest.param(f"pin {EMBEDDER} --expires 20270201", "a day is YYYY-MM-DD", "", id="another way to write a day"),
    pytest.param(f"pin {EMBEDDER} --residency sometimes", "residency", "", id="no such residency"),
]


@pytest.mark.parametrize(("command", "says", "hint"), UNKNOWN)
def test_names_and_words_that_are_none(fleet: Fleet, command: str, says: str, hint: str) -> None:
    ran = fleet.call(*command.split())
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert says in ran.err
    assert hint in ran.err
    assert fleet.git("status", "--porcelain") == ""


BROKEN = [
    pytest.param(f"pin {EMBEDDER} --reason sk-abcdefghijklmnop", "secretInText", id="a secret for a reason"),
    pytest.param("cordon spark-node-01 --reason a\x1b[31mb", "wrongForm", id="a reason that drives a terminal"),
    pytest.param(
        f"pin {EMBEDDER} --recipe linux-nvidia-gb10-qwen38-27b-nvfp4-vllm", "recipeOfOtherModel", id="another's recipe"
    ),
]


@pytest.mark.parametrize(("command", "code"), BROKEN)
def test_a_result_with_errors_is_not_written(fleet: Fleet, command: str, code: str) -> None:
    for more in ([], ["--dry-run"], ["--commit"]):
        ran = fleet.call(*command.split(), *more)
        assert (ran.code, ran.out) == (3, ""), ran.err
        assert f"error[{code}]" in ran.err
    assert fleet.git("status", "--porcelain") == ""


def test_documents_that_can_not_be_read_are_told_before_names(fleet: Fleet) -> None:
    fleet.edit(NODE, lambda text: text.replace("spec:", "spec"))
    ran = fleet.call("cordon", "spark-node-01")
    assert ran.code == 3
    assert f"--> {NODE}" in ran.err


def test_the_dry_form_shows_what_the_real_one_does(fleet: Fleet, tmp_path: Path) -> None:
    dry = fleet.call("cordon", "spark-node-01", "--reason", "firmware", "--dry-run", "--commit")
    assert dry.code == 0
    assert "would write fleet/nodes/spark-node-01.yaml, and commit it as 'Cordon spark-node-01'" in dry.err
    assert fleet.git("status", "--porcelain") == ""
    patched = subprocess.run(["git", "apply"], cwd=fleet.root, input=dry.out, text=True, capture_output=True)
    assert patched.returncode == 0, patched.stderr
    by_hand = fleet.read(NODE)
    fleet.git("checkout", "--", ".")
    fleet.call("cordon", "spark-node-01", "--reason", "firmware")
    assert fleet.read(NODE) == by_hand


def test_a_commit_holds_the_edited_file_alone(fleet: Fleet) -> None:
    fleet.edit("fleet/pool.yaml", lambda text: text + "# a thought\n")
    (fleet.root / "fleet/aliases.yaml").write_text(fleet.read("fleet/aliases.yaml") + "# staged\n")
    fleet.git("add", "fleet/aliases.yaml")
    ran = fleet.call("cordon", "spark-node-01", "--reason", "firmware", "--commit", "--json")
    assert ran.code == 0, ran.err
    told = ran.json
    assert told["commit"] == fleet.git("rev-parse", "HEAD")
    assert (told["changed"], told["written"], told["file"]) == (True, True, NODE)
    assert fleet.git("show", "--format=%an <%ae>%n%B", "--name-only").split("\n") == [
        "Fleet Owner <owner@fleet.example>",
        "Cordon spark-node-01",
        "",
        "  firmware",
        "",
        "",
        NODE,
    ]
    assert fleet.git("status", "--porcelain").splitlines() == ["M  fleet/aliases.yaml", " M fleet/pool.yaml"]
    assert fleet.call("cordon", "spark-node-01", "--commit", "--json").json["changed"] is False
    assert fleet.git("rev-parse", "HEAD") == told["commit"]


def test_a_commit_is_signed_where_the_person_signs(fleet: Fleet, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgSign", "yes")):
        fleet.git("config", name, value)
    assert fleet.call("profile", "standalone", "--commit").code == 0
    assert "-----BEGIN SSH SIGNATURE-----" in fleet.git("cat-file", "commit", "HEAD")


COMMIT_REFUSALS = [
    pytest.param(lambda fleet: fleet.edit(NODE, lambda text: text + "# mine\n"), "editsBefore", id="other edits"),
    pytest.param(lambda fleet: fleet.git("checkout", "--quiet", "--detach"), "detachedHead", id="no branch"),
    pytest.param(lambda fleet: fleet.git("config", "user.email", ""), "noIdentity", id="nobody"),
]


@pytest.mark.parametrize(("spoil", "code"), COMMIT_REFUSALS)
def test_a_commit_that_would_take_in_more_is_refused_before_anything_is_written(
    fleet: Fleet, spoil: object, code: str
) -> None:
    spoil(fleet)  # type: ignore[operator]
    before = fleet.read(NODE)
    ran = fleet.call("cordon", "spark-node-01", "--commit")
    assert ran.code == 5
    assert f"error[{code}]" in ran.err
    assert fleet.read(NODE) == before
    assert fleet.call("cordon", "spark-node-01").code == 0


def test_hands_off_a_node_in_hold(fleet: Fleet) -> None:
    fleet.edit(NODE, lambda text: text.replace("spec:\n", "spec:\n  state: hold\n"))
    for command in ("cordon", "uncordon", "drain"):
        ran = fleet.call(command, "spark-node-01")
        assert ran.code == 5
        assert "error[nodeHeld]" in ran.err


def test_pins_in_files_of_their_own(fleet: Fleet) -> None:
    own = fleet.root / "fleet/pins/audio.yaml"
    own.parent.mkdir()
    text = "apiVersion: lloom-gitops/v1\r\nkind: Pins\r\nmetadata: {name: audio}\r\nspec:\r\n  # Talking\r\n"
    own.write_bytes(f"{text}  qwen3-tts-1.7b@spark-node-03: {{ residency: always }}\r\n".encode())
    assert fleet.call("pin", "qwen3-tts-1.7b@spark-node-03", "--reason", "x").code == 0
    assert own.read_bytes() == f"{text}  qwen3-tts-1.7b@spark-node-03: {{ residency: always, reason: x }}\r\n".encode()
    assert fleet.call("pin", EMBEDDER).code == 0
    assert f"  {EMBEDDER}: {{}}\n" in fleet.read("fleet/pins.yaml")

    (fleet.root / "fleet/pins.yaml").unlink()
    assert fleet.call("pin", EMBEDDER).code == 0
    assert own.read_bytes().endswith(f"  {EMBEDDER}: {{}}\r\n".encode())

    own.unlink()
    assert fleet.call("pin", EMBEDDER).code == 0
    assert fleet.read("fleet/pins.yaml") == (
        "# yaml-language-server: $schema=../schemas/pins.v1.schema.json\n"
        f"apiVersion: lloom-gitops/v1\nkind: Pins\nmetadata: {{name: pins}}\nspec:\n  {EMBEDDER}: {{}}\n"
    )


def test_warnings_that_come_with_an_edit_are_shown(fleet: Fleet) -> None:
    (fleet.root / "fleet/nodes/macbook-local.yaml").rename(fleet.root / "fleet/nodes/mac.yaml")
    assert fleet.call("pin", EMBEDDER).err.startswith("wrote")
    ran = fleet.call("cordon", "spark-node-03")
    assert ran.code == 0
    assert "warning[pinOnCordonedNode]" in ran.err
    assert "nameOfFile" not in ran.err
    assert fleet.call("cordon", "macbook-local").code == 0
    assert "  state: cordon\n" in fleet.read("fleet/nodes/mac.yaml")


def test_unpin_says_when_a_profile_pins_too(fleet: Fleet) -> None:
    profile = "fleet/profiles/standalone.yaml"
    fleet.edit(profile, lambda text: text.rstrip("\n") + f"\n  pins: {{{EMBEDDER}: {{}}}}\n")
    fleet.call("profile", "standalone")
    ran = fleet.call("unpin", EMBEDDER)
    assert ran.code == 0
    assert "(but by the active profile standalone) already" in ran.err


def test_what_can_not_be_changed_alone_is_left_to_an_editor(fleet: Fleet) -> None:
    fleet.edit("fleet/pool.yaml", lambda text: text.replace("{name: three-spark}", "{name: x, labels: {use: &p pair}}"))
    fleet.edit("fleet/pool.yaml", lambda text: text.replace("  head:", "  activeProfile: &q pair\n  head:"))
    assert fleet.call("profile", "standalone").code == 0, "an anchor that nothing uses may go"
    fleet.edit("fleet/pool.yaml", lambda text: text.replace("activeProfile: standalone", "activeProfile: *p"))
    before = fleet.read("fleet/pool.yaml")
    ran = fleet.call("profile", "standalone")
    assert ran.code == 5
    assert "error[notEditable]" in ran.err
    assert fleet.read("fleet/pool.yaml") == before
