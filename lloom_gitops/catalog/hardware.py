"""Hardware by its label: compute arch and memory bandwidth of one device, to carry a benchmark over (CAT-4).

Bandwidth is the vendor's figure in GB/s. Decoding reads all weights once a token, so it is what tokens a second follow.
Machines that are not listed have no such figure, and nothing is scaled to or from them.
"""

from __future__ import annotations

import re

import msgspec

from lloom_gitops.model.inventory import Accelerator


class Hardware(msgspec.Struct, frozen=True):
    """Compute arch and memory bandwidth (GB/s) of one device."""

    arch: str
    bandwidth: int


HARDWARE: dict[str, Hardware] = {
    "dgx-spark": Hardware("sm_121", 273),
    "gb10": Hardware("sm_121", 273),
    "rtx-3090": Hardware("sm_86", 936),
    "rtx-4090": Hardware("sm_89", 1008),
    "l40s": Hardware("sm_89", 864),
    "rtx-6000-ada": Hardware("sm_89", 960),
    "a100": Hardware("sm_80", 2039),
    "h100": Hardware("sm_90", 3350),
    "h200": Hardware("sm_90", 4800),
    "b200": Hardware("sm_100", 8000),
    "rtx-5090": Hardware("sm_120", 1792),
    "rtx-pro-6000": Hardware("sm_120", 1792),
    "m1": Hardware("apple-metal", 68),
    "m1-pro": Hardware("apple-metal", 200),
    "m1-max": Hardware("apple-metal", 400),
    "m1-ultra": Hardware("apple-metal", 800),
    "m2": Hardware("apple-metal", 100),
    "m2-pro": Hardware("apple-metal", 200),
    "m2-max": Hardware("apple-metal", 400),
    "m2-ultra": Hardware("apple-metal", 800),
    "m3": Hardware("apple-metal", 100),
    "m3-pro": Hardware("apple-metal", 150),
    "m3-max": Hardware("apple-metal", 400),
    "m3-ultra": Hardware("apple-metal", 819),
    "m4": Hardware("apple-metal", 120),
    "m4-pro": Hardware("apple-metal", 273),
    "m4-max": Hardware("apple-metal", 546),
}


def known_as(name: str) -> Hardware | None:
    """What is known of a label or an accelerator's name (`Apple M2 Max` is `m2-max`): the longest label in it."""
    plain = f"-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}-"
    labels = sorted((label for label in HARDWARE if f"-{label}-" in plain), key=lambda label: (-len(label), label))
    return HARDWARE[labels[0]] if labels else None


def of_machine(labels: frozenset[str], accelerators: tuple[Accelerator, ...]) -> Hardware | None:
    """What is known of a node by its labels, else by the names of its accelerators."""
    names = (*sorted(labels), *(accelerator.name or "" for accelerator in accelerators))
    return next((found for name in names if (found := known_as(name)) is not None), None)
