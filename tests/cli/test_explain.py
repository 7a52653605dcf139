"""`explain` reads the committed plan, or a file, and never plans: what it says stays when the fleet changes."""

from __future__ import annotations

from .conftest import Fleet


def test_the_committed_plan_is_explained_and_not_made_anew(fleet: Fleet) -> None:
    assert (fleet.call("explain", "cognition").code, fleet.call("explain", "latched").code) == (5, 0)
    fleet.cordon("spark-node-01")
    fleet.call("plan", "--write")
    said = fleet.call("explain", "cognition")
    assert said.code == 0
    assert "qwen3.8-27b on qwen38-27b-03" in said.out
    assert "spark-node-01 is cordoned" in said.out
    (fleet.root / "fleet/pool.yaml").write_text("broken: [")
    again = fleet.call("explain", "cognition")
    assert (again.code, again.out) == (0, said.out)


def test_a_plan_of_ones_own_and_names_that_are_not_there(fleet: Fleet) -> None:
    file = fleet.root / "what-if.yaml"
    fleet.call("plan", "--offline", "--cordon", "spark-node-01", "--out", str(file))
    told = fleet.call("--json", "explain", "spark-node-01", "--plan", str(file)).json
    assert told["formatVersion"] == "1.0"
    (node,) = told["subjects"]
    assert (node["word"], node["role"]["state"]) == ("node", "cordon")
    assert {lane for lane, _ in node["keptOff"]} >= {"image-03", "qwen38-27b-03"}
    missing = fleet.call("explain", "cognitoin", "--plan", str(file))
    assert missing.code == 2
    assert "cognition" in missing.err
    assert fleet.call("explain", "cognition", "--plan", "nowhere.yaml").code == 2


def test_a_word_that_is_a_code_has_its_page(fleet: Fleet) -> None:
    pages = fleet.call("--json", "explain", "notes").code, fleet.call("--json", "explain", "undeclaredNode").json
    assert pages[0] == 5  # no such code, and no plan to look in
    assert [page["family"] for page in pages[1]["codes"]] == [
        "a reason that something is not there",
        "a note in a plan",
    ]
