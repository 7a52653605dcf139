"""Local settings: flag over variable over file over default, and nothing from the repository."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lloom_gitops.agent.settings import identity, load_settings
from lloom_gitops.agent.state import Memory, StateFolder
from lloom_gitops.model.errors import Conflict, UsageError


def test_defaults(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "fleet", {"HOME": str(tmp_path)}, {})
    assert settings.state_dir == str(tmp_path / ".local/state/lloom-gitops" / identity(tmp_path / "fleet"))
    assert (settings.remote, settings.branch, settings.name) == ("origin", "main", "head")
    assert settings.own_ref == "refs/lloom/agent/head"
    assert settings.gateway_config is None


def test_a_flag_wins_over_a_variable_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(
        'name = "file"\nbranch = "file"\nremote = "file"\nleaseSeconds = 30\n[endpoints]\nn1 = "http://x"\n'
    )
    environ = {"HOME": str(tmp_path), "LLOOM_GITOPS_CONFIG": str(file), "LLOOM_GITOPS_NAME": "variable",
               "LLOOM_GITOPS_BRANCH": "variable", "LLOOM_GITOPS_LEASE_SECONDS": "45"}  # fmt: skip
    settings = load_settings(tmp_path / "fleet", environ, {"name": "flag", "branch": None})
    assert (settings.name, settings.branch, settings.remote) == ("flag", "variable", "file")
    assert (settings.lease_seconds, settings.endpoints) == (45, {"n1": "http://x"})


@pytest.mark.parametrize(
    ("text", "code"),
    [("name = ", "badSettings"), ("colour = 'red'", "badSettings"), ("leaseSeconds = 3", "badSettings")],
    ids=["no TOML", "an unknown setting", "a lease too short to renew"],
)
def test_a_file_that_can_not_be_used(tmp_path: Path, text: str, code: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        load_settings(tmp_path / "fleet", {"LLOOM_GITOPS_CONFIG": str(file)}, {})
    assert error.value.code == code


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        load_settings(tmp_path, {"LLOOM_GITOPS_CONFIG": str(tmp_path / "none.toml")}, {})


def test_the_state_folder_is_never_in_the_repository(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        load_settings(tmp_path, {}, {"state_dir": str(tmp_path / "fleet" / "state")})
    assert error.value.code == "stateInRepo"


def test_two_clones_of_one_name_have_two_folders(tmp_path: Path) -> None:
    assert identity(tmp_path / "a" / "fleet") != identity(tmp_path / "b" / "fleet")


# The state folder ----------------------------------------------------------------------------------------------------


def test_memory_lasts(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state", lambda: "word")
    with folder.held():
        assert folder.recall() == Memory(nonce="word")
        folder.remember(Memory(nonce="word", applied="1a2b", answered={"n1": 12.5}))
    assert StateFolder(tmp_path / "state", lambda: "other").recall().applied == "1a2b"


def test_memory_that_can_not_be_read_is_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "memory.json").write_text("{")
    assert StateFolder(tmp_path, lambda: "word").recall() == Memory(nonce="word")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path, lambda: "word")
    refused: list[str] = []

    def second() -> None:
        try:
            with StateFolder(tmp_path, lambda: "other").held():
                refused.append("both have it")
        except Conflict as error:
            refused.append(error.code)

    with folder.held():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert refused == ["agentRunning"]
    with folder.held():
        pass
