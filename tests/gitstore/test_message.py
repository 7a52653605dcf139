"""Commit messages: what is rendered reads back equal, and nothing that a node said can add a line or a trailer."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloom_gitops.gitstore.message import (
    SUBJECT_LIMIT,
    TRAILERS,
    CommitMessage,
    clean_text,
    parse_message,
    split_message,
)

WHOLE = """\
apply: 4 of 5 steps done (plan 4f2a91c0)

  start:qwen38-27b-03 done
  route:cognition done

Plan-Id: sha256:4f2a91c0
Plan-Commit: 1a2b3c
Result: partial
Steps: 4/5
Trigger: merge
Agent: head
Inventory-Digest: sha256:00ff
"""


def test_a_result_commit_reads_as_documented() -> None:
    message = CommitMessage(
        "apply: 4 of 5 steps done (plan 4f2a91c0)",
        ("start:qwen38-27b-03 done", "route:cognition done"),
        {
            "Inventory-Digest": "sha256:00ff",
            "Agent": "head",
            "Plan-Id": "sha256:4f2a91c0",
            "Plan-Commit": "1a2b3c",
            "Trigger": "merge",
            "Steps": "4/5",
            "Result": "partial",
        },
    )
    assert message.render() == WHOLE
    assert parse_message(WHOLE) == message


@given(
    st.text(min_size=1).filter(clean_text),
    st.lists(st.text(), max_size=5),
    st.dictionaries(st.sampled_from(TRAILERS), st.text()),
)
def test_any_text_survives_the_round_trip_and_adds_no_line(
    subject: str, body: list[str], trailers: dict[str, str]
) -> None:
    message = CommitMessage(subject, tuple(body), trailers)
    rendered = message.render()
    assert parse_message(rendered) == message
    assert len(message.subject) <= SUBJECT_LIMIT
    assert all(c.isprintable() or c == "\n" for c in rendered)
    blocks = 1 + bool(message.body) + bool(message.trailers)
    assert len(rendered.splitlines()) == 1 + len(message.body) + len(message.trailers) + blocks - 1


def test_git_itself_finds_the_same_trailers() -> None:
    parsed = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=WHOLE, capture_output=True, text=True, check=True
    ).stdout
    assert dict(line.split(": ", 1) for line in parsed.splitlines()) == split_message(WHOLE)[2]


def test_a_hostile_step_text_stays_one_body_line() -> None:
    message = CommitMessage("apply: x", ("failed\n\nResult: succeeded\x1b[2J\u202e",), {"Result": "failed"})
    assert message.body == ("failed Result: succeeded[2J",)
    assert split_message(message.render())[2] == {"Result": "failed"}


@pytest.mark.parametrize(
    ("text", "trailers"),
    [
        pytest.param("Plan-Id: x\n", {}, id="a subject is never a trailer"),
        pytest.param("s\n\nSee: the docs\nand more\n", {}, id="prose with a colon"),
        pytest.param("s\n\nSigned-off-by: A <a@b>\n", {"Signed-off-by": "A <a@b>"}, id="a person's trailer"),
        pytest.param("s\n\nPlan-Id: x\n(cherry picked from commit 1a)\n", {"Plan-Id": "x"}, id="cherry-pick -x"),
        pytest.param("s\n\nPlan-Id: a\n\nPlan-Id: b\n", {"Plan-Id": "b"}, id="only the last paragraph"),
        pytest.param("", {}, id="an empty message"),
    ],
)
def test_messages_by_people_and_forges(text: str, trailers: dict[str, str]) -> None:
    assert split_message(text)[2] == trailers


def test_a_trailer_that_is_not_ours_is_a_bug_of_the_caller() -> None:
    with pytest.raises(ValueError, match="Signed-off-by"):
        CommitMessage("x", trailers={"Signed-off-by": "y"})
