"""What the judges of documents know: the documents as far as they can be read, and the names that exist."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from lloom_gitops.codec.desired import LoadedDesired
from lloom_gitops.codec.parsing import join_pointer
from lloom_gitops.codec.wording import nearest
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import Finding, Severity
from lloom_gitops.model.inventory import Inventory

from .documents_codes import MEANINGS


@dataclass(frozen=True)
class Scene:
    """The documents under judgement. `inventory` is None where none is committed; `today` is a day in UTC.

    A name is *open* where it could stand in a document that can't be read, or only in an inventory that isn't there.
    """

    loaded: LoadedDesired
    inventory: Inventory | None
    today: date

    @property
    def desired(self) -> Desired:
        return self.loaded.readable

    @cached_property
    def seen(self) -> Inventory:
        """The inventory, empty where none is committed."""
        return self.inventory or Inventory()

    @cached_property
    def nodes(self) -> frozenset[str]:
        """Declared nodes and members."""
        return frozenset(self.desired.nodes) | frozenset(self.seen.nodes)

    @cached_property
    def lanes(self) -> frozenset[str]:
        """Declared and seen lanes."""
        return frozenset(self.desired.lanes) | frozenset(self.seen.lanes)

    @cached_property
    def models(self) -> frozenset[str]:
        """Models that a recipe, a declared lane or a seen lane serves."""
        recipes = (model.gateway_model for recipe in self.desired.recipes.values() for model in recipe.spec.models)
        declared = (model for lane in self.desired.lanes.values() if lane.pool for model in lane.pool.models)
        seen = (model for lane in self.seen.lanes.values() for model in lane.models)
        return frozenset((*recipes, *declared, *seen))

    @cached_property
    def externals(self) -> frozenset[str]:
        """Models that some alias names as external."""
        return frozenset(model for alias in self.desired.aliases.values() for model in alias.external)

    def unreadable(self, *kinds: Kind) -> bool:
        """True where a document of one of these kinds is missing from what could be read."""
        return any(kind in self.loaded.broken for kind in kinds)

    def finding(self, code: str, tokens: tuple[str | int, ...], message: str, **rest: Any) -> Finding:
        """A finding at a value of the desired state; `tokens` lead to it (`("pool", "head")`)."""
        assert code in MEANINGS, code
        return self.loaded.places.finding(
            code, join_pointer(*tokens), message, **{"hint": MEANINGS[code].remedy, **rest}
        )

    def unknown(
        self, code: str, tokens: tuple[str | int, ...], name: str, names: frozenset[str], *, seen_only: bool = False
    ) -> Finding:
        """A finding about a name that leads nowhere; a warning where only an inventory could tell and there is none."""
        open_name = seen_only and self.inventory is None
        hint = nearest(name, names) or MEANINGS[code].remedy
        return self.finding(
            code,
            tokens,
            f"{name} is not known" + (", and there is no inventory to look it up in" if open_name else ""),
            severity=Severity.WARNING if open_name else Severity.ERROR,
            hint="`lloom-gitops inventory --write` records what runs" if open_name else hint,
        )
