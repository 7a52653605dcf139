"""Direct links between nodes by fabric: what ranks of one lane need between each two of them (PLN-2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory


def fabrics(desired: Desired, inventory: Inventory, a: str, b: str) -> frozenset[str]:
    """Fabrics that link two nodes directly, as reported or declared by either side; links are symmetric."""
    return frozenset(
        link.fabric
        for here, there in ((a, b), (b, a))
        for source in (inventory.nodes.get(here), desired.nodes.get(here))
        if source is not None
        for link in source.links
        if link.peer == there
    )


def unlinked(desired: Desired, inventory: Inventory, nodes: tuple[str, ...]) -> tuple[str, str] | None:
    """What keeps ranks on `nodes` from talking: the first pair that no link joins, or that no fabric of all does.

    None: one fabric links every pair.
    """
    common: frozenset[str] | None = None
    for a, b in combinations(nodes, 2):
        found = fabrics(desired, inventory, a, b)
        common = found if common is None else common & found
        if not common:
            return a, b
    return None


def linked_sets(desired: Desired, inventory: Inventory, nodes: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """Every set of `size` nodes that one fabric links pairwise, each sorted, in order."""
    among = sorted(nodes)
    allowed = set(among)
    peers = {name: {there for there in _peers(desired, inventory, name) if there in allowed} for name in among}
    for a, there in list(peers.items()):
        for b in there:
            peers[b].add(a)

    def extend(chosen: tuple[str, ...], common: frozenset[str] | None, open_: list[str]) -> Iterator[tuple[str, ...]]:
        if len(chosen) == size:
            yield chosen
            return
        for place, name in enumerate(open_):
            shared = common
            for other in chosen:
                found = fabrics(desired, inventory, other, name)
                shared = found if shared is None else shared & found
            if shared is None or shared:
                later = [other for other in open_[place + 1 :] if other in peers[name]]
                yield from extend((*chosen, name), shared, later)

    yield from extend((), None, among)


def _peers(desired: Desired, inventory: Inventory, node: str) -> frozenset[str]:
    sources = (inventory.nodes.get(node), desired.nodes.get(node))
    return frozenset(link.peer for source in sources if source is not None for link in source.links)
