"""The desired state of a fleet repository: what is in it, what its digest covers, and where things stand."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lloom_gitops.codec import desired_kind, load_desired
from lloom_gitops.codec.desired import OTHER_PATHS
from lloom_gitops.model.document import Kind
from tests.pools import fleet_files

Files = dict[str, bytes]


def digest_of(files: Files) -> str:
    loaded = load_desired(files)
    assert loaded.digest is not None, loaded.findings
    return loaded.digest


def small() -> Files:
    head = "apiVersion: lloom-gitops/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n"
    texts = {
        "fleet/pool.yaml": head.format("Pool", "lab") + "  head: n1\n",
        "fleet/nodes/n1.yaml": head.format("Node", "n1") + "  endpoint: http://10.0.0.1:8100\n",
        "fleet/nodes/n2.yaml": head.format("Node", "n2") + "  links: [{peer: n1, fabric: f}]\n",
        "fleet/aliases.yaml": head.format("Aliases", "aliases")
        + "  aliases:\n    chat: {models: [big, small]}\n    image: {models: [img]}\n",
        "fleet/pins.yaml": head.format("Pins", "pins") + "  small@n2: {residency: always}\n  img@n1: {}\n",
    }
    return {path: text.encode() for path, text in texts.items()}


def replaced(path: str, old: str, new: str) -> Callable[[Files], Files]:
    def change(files: Files) -> Files:
        assert old.encode() in files[path]
        return files | {path: files[path].replace(old.encode(), new.encode())}

    return change


def moved(old: str, new: str) -> Callable[[Files], Files]:
    return lambda files: {new if path == old else path: data for path, data in files.items()}


def split_aliases(files: Files) -> Files:
    text = files["fleet/aliases.yaml"].decode()
    one, two = "    chat: {models: [big, small]}\n", "    image: {models: [img]}\n"
    rest = {path: data for path, data in files.items() if path != "fleet/aliases.yaml"}
    halves = {"fleet/aliases/a.yaml": text.replace(one, ""), "fleet/aliases/b.yaml": text.replace(two, "")}
    return rest | {path: half.encode() for path, half in halves.items()}


def unlisted_twice(files: Files) -> Files:
    text = files["fleet/aliases.yaml"].decode().replace("  aliases:", "  unlisted: WORD\n  aliases:")
    other = text.replace("chat", "talk").replace("image", "pictures")
    return files | {
        "fleet/aliases.yaml": text.replace("WORD", "remove").encode(),
        "fleet/aliases/z.yaml": other.replace("WORD", "keep").encode(),
    }


SAME = {
    "shuffled": lambda files: dict(random.Random(7).sample(list(files.items()), len(files))),
    "comments": replaced("fleet/pool.yaml", "spec:", "# why\nspec: # what"),
    "quotes": replaced("fleet/pool.yaml", "head: n1", 'head: "n1"'),
    "default of a word": replaced("fleet/pool.yaml", "head: n1", "head: n1\n  activeProfile: null"),
    "default of a rule": replaced("fleet/pool.yaml", "head: n1", "head: n1\n  memory: {unified: {guardCeiling: 0.90}}"),
    "default of memory": replaced("fleet/pool.yaml", "head: n1", "head: n1\n  memory: {marginGb: 2.0}"),
    "default of device memory": replaced(
        "fleet/pool.yaml",
        "head: n1",
        "head: n1\n  memory: {device: {guardCeiling: 0.95, reserveGb: 1, headroomGb: 0.5}}",
    ),
    "default of an alias": replaced("fleet/aliases.yaml", "{models: [img]}", "{models: [img], needs: {}}"),
    "default of all aliases": replaced("fleet/aliases.yaml", "  aliases:", "  unlisted: keep\n  aliases:"),
    "default of a node": replaced("fleet/nodes/n1.yaml", "endpoint", "state: serve\n  memory: {}\n  endpoint"),
    "order of pins": replaced(
        "fleet/pins.yaml",
        "  small@n2: {residency: always}\n  img@n1: {}",
        "  img@n1: {}\n  small@n2: {residency: always}",
    ),
    "file of a node": moved("fleet/nodes/n1.yaml", "fleet/nodes/first.yaml"),
    "aliases in two files": split_aliases,
    "pins in a folder": moved("fleet/pins.yaml", "fleet/pins/all.yaml"),
    "confirmation": lambda files: files | {"fleet/confirmations.yaml": b"anything"},
    "hold": lambda files: files | {"fleet/holds.yaml": b"anything"},
    "signers": lambda files: files | {"fleet/allowed_signers": b"anything"},
    "inventory, plan and status": lambda files: files | dict.fromkeys(OTHER_PATHS, b"anything"),
    "other files": lambda files: files | {"fleet/README.md": b"x", ".github/workflows/ci.yaml": b"x: ["},
}

OTHER = {
    "state of a node": replaced("fleet/nodes/n1.yaml", "endpoint", "state: cordon\n  endpoint"),
    "order of models": replaced("fleet/aliases.yaml", "[big, small]", "[small, big]"),
    "a node less": lambda files: {path: data for path, data in files.items() if path != "fleet/nodes/n2.yaml"},
    "labels": replaced("fleet/nodes/n1.yaml", "{name: n1}", "{name: n1, labels: {hardware: dgx-spark}}"),
    "unlisted": replaced("fleet/aliases.yaml", "  aliases:", "  unlisted: remove\n  aliases:"),
    "memory rule": replaced("fleet/pool.yaml", "head: n1", "head: n1\n  memory: {unified: {guardCeiling: 0.91}}"),
    # A node's rule that repeats the pool's default still holds when the pool's changes.
    "rule of a node": replaced("fleet/nodes/n1.yaml", "endpoint", "memory: {unified: {guardCeiling: 0.9}}\n  endpoint"),
    "reason of a pin": replaced("fleet/pins.yaml", "img@n1: {}", "img@n1: {reason: why}"),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME.keys())
def test_same_digest(change: Callable[[Files], Files]) -> None:
    assert digest_of(change(small())) == digest_of(small())


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER.keys())
def test_other_digest(change: Callable[[Files], Files]) -> None:
    assert digest_of(change(small())) != digest_of(small())


FAULTS = {
    "no pool": (
        lambda files: {p: d for p, d in files.items() if p != "fleet/pool.yaml"},
        "poolMissing",
        "fleet/pool.yaml",
    ),
    "alias in two files": (
        lambda files: files | {"fleet/aliases/b.yaml": files["fleet/aliases.yaml"]},
        "duplicateName",
        "fleet/aliases/b.yaml:6:5",
    ),
    "node in two files": (
        lambda files: files | {"fleet/nodes/n3.yaml": files["fleet/nodes/n1.yaml"]},
        "duplicateName",
        "fleet/nodes/n3.yaml:3:12",
    ),
    "pin in two files": (
        lambda files: files | {"fleet/pins/b.yaml": files["fleet/pins.yaml"]},
        "duplicateName",
        "fleet/pins/b.yaml:5:3",
    ),
    "unlisted said twice": (
        unlisted_twice,
        "unlistedDiffers",
        "fleet/aliases/z.yaml:5:3",
    ),
    "typo of a folder": (lambda files: files | {"fleet/node/n3.yaml": b""}, "unknownFile", "fleet/node/n3.yaml"),
    "other suffix": (moved("fleet/pins.yaml", "fleet/pins.yml"), "unknownFile", "fleet/pins.yml"),
    "kind of another folder": (
        moved("fleet/pins.yaml", "fleet/nodes/pins.yaml"),
        "wrongKind",
        "fleet/nodes/pins.yaml:2:1",
    ),
    "broken YAML": (replaced("fleet/pins.yaml", "{}", "{"), "yamlSyntax", "fleet/pins.yaml:7:1"),
}


@pytest.mark.parametrize(("change", "code", "place"), FAULTS.values(), ids=FAULTS.keys())
def test_faults(change: Callable[[Files], Files], code: str, place: str) -> None:
    loaded = load_desired(change(small()))
    assert (loaded.desired, loaded.digest) == (None, None)
    assert (code, place) in [(finding.code, finding.place) for finding in loaded.findings]


def test_what_can_be_read_is_there_for_further_judges() -> None:
    loaded = load_desired(replaced("fleet/nodes/n1.yaml", "endpoint", "endpint")(small()))
    assert set(loaded.readable.nodes) == {"n2"}
    assert loaded.broken == {Kind.NODE}
    assert set(loaded.readable.aliases) == {"chat", "image"}


def test_places_of_values() -> None:
    places = load_desired(small()).places
    assert places.finding("x", "/aliases/chat/models/1", "m").place == "fleet/aliases.yaml:6:26"
    assert places.finding("x", "/pins/small@n2/residency", "m").place == "fleet/pins.yaml:5:14"
    assert places.finding("x", "/pool/head", "m").pointer == "/spec/head"
    assert places.finding("x", "/lanes/none", "m").place == ""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("fleet/aliases/team.yaml", Kind.ALIASES),
        ("recipes/r.yaml", Kind.RECIPE),
        ("fleet/policies/p.yaml", Kind.POLICY),
        ("fleet/nodes/deep/n.yaml", None),
        ("fleet/plan.yaml", None),
        ("other/fleet/pool.yaml", None),
        ("fleet/pool.yaml\n", None),
    ],
)
def test_kind_of_a_path(path: str, kind: Kind | None) -> None:
    assert desired_kind(path) is kind


def test_the_fleet_of_this_repository_loads() -> None:
    loaded = load_desired(fleet_files())
    assert loaded.findings == ()
    assert loaded.desired is not None
    assert len(loaded.desired.nodes) == 4
    assert len(loaded.desired.aliases) == 8
