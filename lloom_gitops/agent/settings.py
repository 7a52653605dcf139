"""Settings of the agent that are this machine's own business: never taken from the repository (lifecycle.md, Trust).

A flag wins over an environment variable, that over the local file (TOML), that over the default.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lloom_gitops.model.errors import UsageError

PREFIX = "LLOOM_GITOPS_"
"""Of the environment variables: the field's name in capitals follows."""

_FILE_VARIABLE = PREFIX + "CONFIG"


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the agent is told locally.

    `gateway_config` is the head gateway's config file, `state_dir` the agent's own folder. `remote` and `branch` are
    where merged plans come from. `name` is the agent's in status, commits and lease. `lease_seconds` is how long a
    lease holds without renewal. `author_name` and `author_email` stand in its commits, `signing_key` as git's
    `user.signingKey`. `endpoints` replaces endpoints of nodes, where this machine reaches them by other addresses.
    """

    state_dir: str
    gateway_config: str | None = None
    remote: str = "origin"
    branch: str = "main"
    name: str = "head"
    lease_seconds: int = 60
    author_name: str = "lloom-gitops agent"
    author_email: str = "lloom-gitops@localhost"
    signing_key: str | None = None
    endpoints: dict[str, str] = {}

    @property
    def own_ref(self) -> str:
        """The ref that only this agent writes."""
        return f"refs/lloom/agent/{self.name}"


def load_settings(repo: Path, environ: Mapping[str, str], flags: Mapping[str, Any]) -> AgentSettings:
    """The settings for the clone at `repo`. `flags` hold fields by name, None where not given.

    Raises `UsageError` for a file, variable or flag that can't be used.
    """
    home = Path(environ.get("HOME") or "/")
    given: dict[str, Any] = {"stateDir": str(_state_home(environ, home) / "lloom-gitops" / identity(repo))}
    given |= _from_file(environ, home)
    for field in msgspec.structs.fields(AgentSettings):
        value = environ.get(PREFIX + field.name.upper())
        if value and field.name != "endpoints":
            given[field.encode_name] = value
    wire = {field.name: field.encode_name for field in msgspec.structs.fields(AgentSettings)}
    given |= {wire[name]: value for name, value in flags.items() if value is not None}
    try:
        settings = msgspec.convert(given, AgentSettings, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(code="badSettings", message=f"the agent's settings can't be used: {error}") from error
    return _checked(settings, repo)


def identity(repo: Path) -> str:
    """A folder name for a clone: its own name for people, and a digest of its place that tells two apart."""
    place = str(repo.resolve())
    return f"{repo.resolve().name}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def _checked(settings: AgentSettings, repo: Path) -> AgentSettings:
    state = Path(settings.state_dir).expanduser().resolve()
    if state.is_relative_to(repo.resolve()):
        raise UsageError(
            code="stateInRepo",
            message="the agent's state folder lies in the repository",
            hint="name one outside with --state-dir: nothing local may come from the repository",
        )
    if settings.lease_seconds < 10:
        raise UsageError(code="badSettings", message="leaseSeconds: a lease needs at least 10 s to be renewed in time")
    config = settings.gateway_config
    return msgspec.structs.replace(
        settings,
        state_dir=str(state),
        gateway_config=None if config is None else str(Path(config).expanduser().resolve()),
    )


def _state_home(environ: Mapping[str, str], home: Path) -> Path:
    named = environ.get("XDG_STATE_HOME")
    return Path(named) if named else home / ".local" / "state"


def _from_file(environ: Mapping[str, str], home: Path) -> dict[str, Any]:
    named = environ.get(_FILE_VARIABLE)
    folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    path = Path(named) if named else folder / "lloom-gitops" / "agent.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if named:
            raise UsageError(code="noSuchFile", message=f"{_FILE_VARIABLE}: there is no file {path}") from error
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(code="badSettings", message=f"{path.name} can't be read: {error}") from error
