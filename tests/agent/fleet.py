"""A fleet as people have it: a bare remote, a person's clone, the agent's clone, and the simulated three-Spark pool."""

from __future__ import annotations

import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lloom_gitops.agent import turn
from lloom_gitops.agent.settings import AgentSettings, load_settings
from lloom_gitops.agent.turn_report import TurnReport
from lloom_gitops.cli.agent_world import agent_world
from lloom_gitops.cli.main import main
from lloom_gitops.codec import load_document
from lloom_gitops.drivers.clock import SystemClock
from lloom_gitops.model.document import Kind
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.status import Status
from lloom_gitops.sim.pool import SIM_KEY_ENV, SimPool
from lloom_gitops.sim.three_spark import HEAD, PAIR
from tests.pools import REPO

PLAN, STATUS, INVENTORY = "fleet/plan.yaml", "fleet/status.yaml", "fleet/observed/inventory.yaml"


def git(folder: Path, *args: str, check: bool = True) -> str:
    """git as a person runs it."""
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout.rstrip("\n")


class HastyClock(SystemClock):
    """The real clock, but what is slept passes at once: the simulated pool lives 2,000 times as fast."""

    def __init__(self) -> None:
        self._skipped = 0.0
        self._lock = threading.Lock()

    def monotonic(self) -> float:
        return super().monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        short = min(seconds, 0.02)
        super().sleep(short)
        with self._lock:
            self._skipped += seconds - short


class PairServer:
    """The pair's server that a person starts and stops by hand: stopped, nothing listens at its port any more."""

    def __init__(self) -> None:
        self._server: http.server.ThreadingHTTPServer | None = None
        self._port = 0
        self.start()

    @property
    def health_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/health"

    def start(self) -> None:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self._port), _Healthy)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        return


class Fleet:
    """A remote with a fleet's documents, whose nodes are the gateways of `pool`. `desk` is a person's clone, `home` the
    agent's."""

    def __init__(self, room: Path, pool: SimPool, documents: Mapping[str, str], head: str = HEAD) -> None:
        self.room = room
        self.pool = pool
        self.head = head
        self.remote = room / "remote.git"
        self.desk = room / "desk"
        self.home = room / "agent"
        git(room, "init", "-q", "--bare", "-b", "main", "remote.git")
        git(room, "clone", "-q", str(self.remote), "desk")
        for path, text in documents.items():
            self.write(path, text)
        self.commit("Describe the pool")
        git(room, "clone", "-q", str(self.remote), "agent")

    # What people do

    def write(self, path: str, text: str) -> None:
        (self.desk / path).parent.mkdir(parents=True, exist_ok=True)
        (self.desk / path).write_text(text)

    def edit(self, path: str, pattern: str, new: str) -> None:
        text = (self.desk / path).read_text()
        changed = re.sub(pattern, new.replace("\\", r"\\"), text)
        assert changed != text or new in text, f"{pattern} is not in {path}"
        (self.desk / path).write_text(changed)

    def set_state(self, node: str, state: str) -> None:
        text = (self.desk / f"fleet/nodes/{node}.yaml").read_text()
        text = re.sub(r"\n  state: .*", "", text)
        (self.desk / f"fleet/nodes/{node}.yaml").write_text(text.rstrip("\n") + f"\n  state: {state}\n")

    def cordon_pair(self) -> None:
        for node in ("spark-node-01", "spark-node-02"):
            self.set_state(node, "cordon")

    def plan_write(self, *options: str) -> Plan:
        assert main(["--repo", str(self.desk), "plan", "--write", *options]) == 0
        return self.plan_in(self.desk)

    def commit(self, subject: str, *, push: bool = True) -> str:
        git(self.desk, "add", "-A")
        git(self.desk, "commit", "-q", "-m", subject)
        if push:
            git(self.desk, "push", "-q", "origin", "HEAD:main")
        return git(self.desk, "rev-parse", "HEAD")

    def pull(self) -> None:
        git(self.desk, "pull", "-q", "--no-edit", "origin", "main")

    # What the agent does

    def settings(self, **flags: Any) -> AgentSettings:
        given = {"state_dir": str(self.room / "state"), "gateway_config": str(self.pool.configs[self.head]), **flags}
        return load_settings(self.home, {}, given)

    def turn(
        self,
        *,
        by_person: bool = False,
        stop: Callable[[], str | None] = lambda: None,
        clock: SystemClock | None = None,
        **flags: Any,
    ) -> TurnReport:
        with agent_world(self.home, self.settings(**flags), stop=stop, clock=clock or HastyClock()) as (world, lease):
            return turn.once(world, lease, by_person=by_person)

    def command(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """The command line as a process, in the agent's clone."""
        return subprocess.run(
            self.argv(*words), env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
        )

    def argv(self, *words: str) -> list[str]:
        local = ["--state-dir", str(self.room / "state"), "--gateway-config", str(self.pool.configs[self.head])]
        return [sys.executable, "-m", "lloom_gitops.cli.main", "--repo", str(self.home), *words, *local]

    # What is there

    def show(self, rev: str, path: str) -> str | None:
        done = subprocess.run(["git", "show", f"{rev}:{path}"], cwd=self.remote, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def tip(self, ref: str = "main") -> str:
        return git(self.remote, "rev-parse", ref)

    def subjects(self, rev: str = "main") -> list[str]:
        return git(self.remote, "log", "--format=%s", rev).splitlines()

    def trailers(self, rev: str = "main") -> dict[str, str]:
        lines = git(self.remote, "log", "-1", "--format=%(trailers:only,unfold)", rev).splitlines()
        return dict(line.split(": ", 1) for line in lines if line)

    def status(self, rev: str = "main") -> Status | None:
        text = self.show(rev, STATUS)
        return None if text is None else load_document(Kind.STATUS, text.encode(), STATUS).spec

    def said(self) -> Status | None:
        """What the agent says on its own ref."""
        return self.status("refs/lloom/agent/head")

    def plan_in(self, folder: Path) -> Plan:
        plan: Plan = load_document(Kind.PLAN, (folder / PLAN).read_bytes(), PLAN).spec
        return plan

    def lane(self, node: str, lane: str) -> dict[str, Any]:
        rows = self.pool.call(node, "GET", "/gateway/node").json()["node"]["runtimeManager"]["runtimes"]
        return dict(rows[lane])

    def route(self, alias: str) -> list[str]:
        aliases = self.pool.call(self.head, "GET", "/gateway/routing").json()["aliases"]
        entry = aliases[alias]
        if isinstance(entry, str):
            return [entry]
        return list(entry["members"]) if "members" in entry else [entry["target"]]

    def locks(self) -> list[str]:
        """Lock files that a killed git would have left."""
        folders = (self.remote, self.home / ".git")
        return sorted(str(path) for folder in folders for path in folder.rglob("*.lock"))


def three_spark_documents(pool: SimPool, pair: PairServer, **spec: Any) -> dict[str, str]:
    """The three-Spark fleet with this pool's addresses; `spec` goes into fleet/pool.yaml (`pool_text`)."""
    ours = (PLAN, STATUS, "fleet/confirmations.yaml", "fleet/holds.yaml")
    files = ((path.relative_to(REPO).as_posix(), path.read_text()) for path in (REPO / "fleet").rglob("*.yaml"))
    documents = {path: text for path, text in sorted(files) if path not in ours}
    for node, url in pool.urls.items():
        path = f"fleet/nodes/{node}.yaml"
        text = re.sub(r"endpoint: .*", f"endpoint: {url}", documents[path])
        documents[path] = re.sub(r"apiKeyEnv: .*", f"apiKeyEnv: {SIM_KEY_ENV}", text)
    path = f"fleet/lanes/{PAIR}.yaml"
    documents[path] = re.sub(r"healthUrl: .*", f"healthUrl: {pair.health_url}", documents[path])
    return {**documents, "fleet/pool.yaml": pool_text(**spec)}


def pool_text(*, mode: str = "advise", plan: str = "pr", results: str = "commit", more: str = "") -> str:
    """fleet/pool.yaml with the settings that a test is about."""
    branch = "" if results == "commit" else ", resultsBranch: lloom-results"
    return (
        "apiVersion: lloom-gitops/v1\nkind: Pool\nmetadata: {name: three-spark}\nspec:\n  head: spark-node-01\n"
        f"  controller: {{mode: '{mode}'}}\n  writeBack: {{plan: {plan}, results: {results}{branch}}}\n{more}"
    )


def environment(room: Path, pool: SimPool) -> dict[str, str]:
    """What a process of the agent needs, and no configuration of this machine."""
    config = room / "gitconfig"
    config.write_text("[user]\n\tname = Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n")
    return {
        **os.environ,
        **pool.env,
        "HOME": str(room),
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
