"""Drives one node with real time: runs its flows, makes its calls to other gateways, keeps its files."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.reading import InvalidConfig, read_config
from lloom_gitops.sim.gateway.refusals import Doc
from lloom_gitops.sim.gateway.reload import reload
from lloom_gitops.sim.gateway.tasks import Answer, Ask, Errand, Flow, Task

if TYPE_CHECKING:
    import httpx


class Runner:
    """One node in an event loop. `clock` gives epoch milliseconds."""

    def __init__(self, node: Node, config_path: Path, state_path: Path | None, clock: Callable[[], int]) -> None:
        import httpx

        self.node = node
        self.client: httpx.AsyncClient = httpx.AsyncClient(timeout=None, trust_env=False)
        self._config_path = config_path
        self._state_path = state_path
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._errands: set[asyncio.Task[None]] = set()
        self._seen: tuple[int, int] | None = self._stamp()
        self._saved: Doc = {}

    async def run(self, flow: Flow) -> Any:
        """Run a flow to its end. A caller that goes away does not stop it."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def finish(task: Task) -> None:
            if done.cancelled():
                return
            if task.error is not None:
                done.set_exception(task.error)
            else:
                done.set_result(task.result)

        self.catch_up()
        self.node.run(flow, finish)
        self.kick()
        return await done

    def catch_up(self) -> None:
        """Bring the node to the present, so that what comes next happens now and not at its last look at the clock."""
        self.node.advance(self._clock())

    def kick(self) -> None:
        """Let the node catch up with the clock, send what it asks for, set the alarm for what comes next."""
        self.catch_up()
        outbox = self.node.tasks.outbox
        while outbox:
            errand = asyncio.get_running_loop().create_task(self._settle(outbox.popleft()))
            self._errands.add(errand)
            errand.add_done_callback(self._errands.discard)
        self._keep_state()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.node.next_due()
        if due is not None:
            delay = max(0, due - self._clock()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self.kick)

    async def watch_config(self, poll_seconds: float) -> None:
        """Poll the config file; an invalid one changes nothing and only the log tells."""
        self._read_profiles()
        while True:
            await asyncio.sleep(poll_seconds)
            self._keep_state(ledger=True)
            self._read_profiles()
            stamp = self._stamp()
            if stamp is None or stamp == self._seen:
                continue
            self._seen = stamp
            await self._reload()

    async def close(self) -> None:
        self._keep_state(ledger=True)
        for errand in list(self._errands):
            errand.cancel()
        await self.client.aclose()

    async def _reload(self) -> None:
        node = self.node
        try:
            template = json.loads(await asyncio.to_thread(self._config_path.read_text))
            if template == node.config.template:
                return
            result = await self.run(reload(node, read_config(template, node.build, node.config.env)))
            _log(f"reloaded config; changed runtimes: {', '.join(result['changed']) or 'none'}")
        except (OSError, ValueError, InvalidConfig) as error:
            _log(f"config reload failed: {error}")
        except Exception as error:
            _log(f"config reload failed: {error!r}")

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._config_path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _read_profiles(self) -> None:
        found: dict[str, Doc] = {}
        for path in sorted(self._config_path.parent.glob("profiles/*.json")):
            try:
                found[path.stem] = json.loads(path.read_text())
            except (OSError, ValueError) as error:
                _log(f"fleet profile {path.stem} is unreadable: {error}")
        self.node.fleet_profiles = found

    async def _settle(self, errand: Errand) -> None:
        wish = errand.wish
        answer = await self._call(wish) if isinstance(wish, Ask) else self._write(wish.document, wish.file)
        self.catch_up()
        self.node.tasks.answer(errand, answer)
        self.kick()

    async def _call(self, ask: Ask) -> Answer:
        import httpx

        doc = self.node.config.doc
        target = self.node.config.nodes.get(ask.node, {})
        if not target.get("endpoint"):
            return Answer(error=f"cluster node {ask.node} has no endpoint")
        key = target.get("apiKey") or os.environ.get(target.get("apiKeyEnv") or doc["cluster"].get("apiKeyEnv") or "")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        if ask.requester is not None:
            headers["x-lloom-requester-node"] = ask.requester
        url = target["endpoint"].rstrip("/") + ask.path
        try:
            sending = self.client.request(ask.method, url, json=ask.body, headers=headers)
            response = await asyncio.wait_for(sending, ask.timeout_ms / 1000)
            body = response.json()
        except TimeoutError:
            return Answer(error="This operation was aborted")
        except (httpx.HTTPError, ValueError):
            return Answer(error="fetch failed")
        if response.status_code >= 400:
            return Answer(error=(body.get("error") or {}).get("message") or f"{response.status_code}")
        return Answer(body=body)

    def _write(self, document: Doc, file: str | None) -> Answer:
        path = self._config_path if file is None else self._config_path.parent / file
        try:
            write_json(path, document)
        except OSError as error:
            return Answer(error=str(error))
        if file is None:
            self._seen = self._stamp()
        return Answer(body={})

    def _keep_state(self, *, ledger: bool = False) -> None:
        """Write what outlives this process, when it changed: processes at once, counts now and then."""
        if self._state_path is None:
            return
        fence = {"generation": self.node.fence.generation, "operation": self.node.fence.operation}
        state: Doc = {"machine": self.node.machine.snapshot(), "fence": fence}
        state["ledger"] = self.node.ledger.snapshot() if ledger else self._saved.get("ledger")
        if state != self._saved:
            write_json(self._state_path, state)
            self._saved = json.loads(json.dumps(state))


def restore_state(node: Node, path: Path) -> bool:
    """Find the machine as the last gateway left it; False: there was none."""
    if not path.exists():
        return False
    saved = json.loads(path.read_text())
    node.machine.restore(saved["machine"])
    node.fence.generation = saved["fence"]["generation"]
    node.fence.operation = saved["fence"]["operation"]
    if saved.get("ledger"):
        node.ledger.restore(saved["ledger"])
    return True


def write_json(path: Path, document: Doc) -> None:
    """Two-space JSON, by rename, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(document, indent=2) + "\n")
    temporary.replace(path)


def _log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
