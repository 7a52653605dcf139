"""Everything as people have it, nothing faked in: gateways as processes, HTTP, a bare remote, git, the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lloom_gitops.codec import load_document
from lloom_gitops.model.document import Kind
from lloom_gitops.model.status import Status
from lloom_gitops.sim.demo_fleet import KEY_ENV, cordon, lay_out_fleet
from lloom_gitops.sim.hand_run import HandRunServer
from lloom_gitops.sim.pool import SimPool
from lloom_gitops.sim.three_spark import HEAD, set_pair

PLAN, STATUS, INVENTORY = "fleet/plan.yaml", "fleet/status.yaml", "fleet/observed/inventory.yaml"


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class World:
    """A pool with its remote. `desk` is a person's clone, `home` the agent's; `heard` is all that commands said."""

    def __init__(self, room: Path, pool: SimPool, pair: HandRunServer) -> None:
        self.room = room
        self.pool = pool
        self.pair = pair
        self.remote, self.desk, self.home = room / "remote.git", room / "desk", room / "agent"
        self.state = room / "state"
        self.heard: list[str] = []
        self.env = environment(room, {KEY_ENV: pool.key, **pool.spec.env, **self._local()})
        self.git(room, "init", "-q", "--bare", "remote.git")
        self.git(room, "clone", "-q", "remote.git", "desk")
        lay_out_fleet(self.desk, pool.urls, pair.health_url)

    def _local(self) -> dict[str, str]:
        return {
            "LLOOM_GITOPS_STATE_DIR": str(self.state),
            "LLOOM_GITOPS_GATEWAY_CONFIG": str(self.pool.configs[HEAD]),
        }

    def run(self, *words: str, where: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
        """A command of ours in a clone (the desk), as a process."""
        done = subprocess.run(
            [sys.executable, "-m", "lloom_gitops.cli.main", "--repo", str(where or self.desk), *words],
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.heard += [done.stdout, done.stderr]
        return Ran(done.returncode, done.stdout, done.stderr)

    def agent(self, *words: str) -> Ran:
        """A turn of the agent."""
        return self.run("agent", "--once", *words, where=self.home)

    def git(self, where: Path, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=where, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
        return done.stdout.rstrip("\n")

    # What people do

    def publish(self, subject: str) -> str:
        """Commit all of the desk and push it to main."""
        self.git(self.desk, "add", "-A")
        self.git(self.desk, "commit", "-q", "-m", subject)
        self.git(self.desk, "push", "-q", "origin", "HEAD:main")
        return self.tip()

    def hire(self) -> None:
        """Give the agent its clone."""
        self.git(self.room, "clone", "-q", "remote.git", "agent")

    def move(self, node: str, url: str) -> None:
        """Write another endpoint into a node's document."""
        path = self.desk / f"fleet/nodes/{node}.yaml"
        path.write_text(path.read_text().replace(self.pool.urls[node], url))

    def cordon_pair(self) -> None:
        for node in ("spark-node-01", "spark-node-02"):
            cordon(self.desk, node, "new firmware")

    def stop_pair(self) -> None:
        set_pair(self.pool, up=False)
        self.pair.stop()

    def pull(self) -> None:
        self.git(self.desk, "pull", "-q", "--ff-only", "origin", "main")

    # What is there

    def tip(self) -> str:
        return self.git(self.remote, "rev-parse", "main")

    def changed(self, since: str) -> set[str]:
        """Paths that differ between a commit and the remote's branch."""
        return set(self.git(self.remote, "diff", "--name-only", since, "main").splitlines())

    def status(self) -> Status:
        text = self.git(self.remote, "show", f"main:{STATUS}")
        status: Status = load_document(Kind.STATUS, text.encode(), STATUS).spec
        return status

    def outcomes(self) -> dict[str, str]:
        return {name: step.outcome.value for name, step in self.status().steps.items()}

    def route(self, alias: str) -> list[str]:
        """What the head routes an alias to, in its own model ids."""
        entry = self.pool.call(HEAD, "GET", "/gateway/routing").json()["aliases"][alias]
        return list(entry["members"]) if "members" in entry else [entry["target"]]

    def lane(self, node: str, lane: str) -> dict[str, Any]:
        rows = self.pool.call(node, "GET", "/gateway/node").json()["node"]["runtimeManager"]["runtimes"]
        return dict(rows[lane])

    def answer(self, alias: str) -> str:
        """The model that answers a client of the head."""
        body = {"model": alias, "messages": [{"role": "user", "content": "Who are you?"}]}
        return str(self.pool.call(HEAD, "POST", "/v1/chat/completions", body).json()["model"])

    def locks(self) -> list[str]:
        return sorted(str(path) for folder in (self.remote, self.desk, self.home) for path in folder.rglob("*.lock"))


def environment(room: Path, more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, with a home and a git configuration of the test's own."""
    config = room / "gitconfig"
    config.write_text(
        "[user]\n\tname = Fleet Owner\n\temail = owner@fleet.example\n"
        "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LLOOM_", "XDG_"))}
    own = {"HOME": str(room), "GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **own, **more}
