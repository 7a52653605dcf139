"""What all documents share: the envelope's metadata and the kinds."""

from __future__ import annotations

from enum import StrEnum

import msgspec

API_VERSION = "lloom-gitops/v1"


class Kind(StrEnum):
    """The closed set of document kinds; each has one schema `schemas/<kind>.v1.schema.json`."""

    POOL = "Pool"
    NODE = "Node"
    ALIASES = "Aliases"
    LANE = "Lane"
    PROFILE = "Profile"
    PINS = "Pins"
    POLICY = "Policy"
    RECIPE = "Recipe"
    CONFIRMATIONS = "Confirmations"
    HOLDS = "Holds"
    INVENTORY = "Inventory"
    PLAN = "Plan"
    STATUS = "Status"


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Name of a document; `labels` are free words, `id` is the digest that a plan carries."""

    name: str
    labels: dict[str, str] = {}
    id: str | None = None


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Parent of every value of a document: frozen, camelCase on the wire, unknown fields refused."""
