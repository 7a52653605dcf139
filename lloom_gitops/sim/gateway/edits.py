"""The gateway as a writer of its own config file (newer builds)."""

from __future__ import annotations

import copy
from collections.abc import Callable

from lloom_gitops.sim.gateway.node import Node
from lloom_gitops.sim.gateway.reading import InvalidConfig, read_config
from lloom_gitops.sim.gateway.refusals import Doc, GatewayRefusal
from lloom_gitops.sim.gateway.reload import reload
from lloom_gitops.sim.gateway.tasks import Answer, Flow, Save


def edit_config(node: Node, change: Callable[[Doc], None]) -> Flow:
    """Change the file's document, judge it, write it, take it over; resumes when the reload is through."""
    document = copy.deepcopy(node.config.template)
    change(document)
    try:
        new = read_config(document, node.build, node.config.env)
    except InvalidConfig as invalid:
        raise GatewayRefusal(str(invalid)) from None
    answer: Answer = yield Save(document)
    if answer.error is not None:
        raise GatewayRefusal(answer.error)
    return (yield from reload(node, new))
