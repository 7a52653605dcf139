"""One turn of the agent as a process that kills itself (-9) at a boundary: `python -m tests.agent.killed_turn ...`.

Boundaries are counted before and after each journal write, each call that changes a gateway or its config file, and
each push. The last argument is the boundary to die at; 0 counts them all and prints the number.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lloom_gitops.agent.settings import load_settings
from lloom_gitops.agent.turn import once
from lloom_gitops.cli.agent_world import agent_world
from tests.agent.fleet import HastyClock

_CHANGES = frozenset({"append", "end", "admit", "stop", "set_residency", "set_route", "push", "publish", "remember"})


class Boundaries:
    """Counts, and dies at the one asked for."""

    def __init__(self, dies_at: int) -> None:
        self.count = 0
        self._dies_at = dies_at

    def cross(self) -> None:
        self.count += 1
        if self.count == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def crossing(*args: Any, **given: Any) -> Any:
            self.cross()
            answer = call(*args, **given)
            self.cross()
            return answer

        return crossing


class Mortal:
    """A port whose changing calls are boundaries."""

    def __init__(self, port: Any, boundaries: Boundaries) -> None:
        self._port = port
        self._boundaries = boundaries

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._boundaries.around(found) if name in _CHANGES else found


def main(home: Path, state: Path, config: Path, dies_at: int) -> None:
    boundaries = Boundaries(dies_at)
    settings = load_settings(home, {}, {"state_dir": str(state), "gateway_config": str(config)})
    with agent_world(home, settings, stop=lambda: None, clock=HastyClock()) as (world, lease):
        gateways, configs = world.gateways, world.config

        def mortal_config(desired: Any) -> Any:
            return Mortal(configs(desired), boundaries)

        mortal = dataclasses.replace(
            world,
            journal=Mortal(world.journal, boundaries),
            store=Mortal(world.store, boundaries),
            state=Mortal(world.state, boundaries),
            gateways=lambda desired: {name: Mortal(port, boundaries) for name, port in gateways(desired).items()},
            config=mortal_config,
        )
        once(mortal, lease)
    print(boundaries.count)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
