"""Freeze small fleets into the corpus, each proven by the oracle.

    python -m tests.oracle.freeze add SEED DIMENSION [DIMENSION...]   # a small fleet in which all of these decide
    python -m tests.oracle.freeze recheck                             # tuples anew, and which the planner misses

`recheck` rewrites what changed; read the difference before you commit it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample

from lloom_gitops.checks.plan import judge
from lloom_gitops.model.errors import Refused
from lloom_gitops.planner import plan

from .ablation import WITHOUT, decides, decision
from .frozen import CORPUS, Frozen, all_files, read
from .oracle import best
from .small_fleets import Fleet, fleets

# How many fleets are tried for one in which everything asked for decides; what makes one worth keeping, and small.
TRIES = 500
LANES = range(3, 7)
ALIASES = range(2, 5)


def add(seed: int, dimensions: tuple[str, ...]) -> Frozen | None:
    """Write the first fleet found in which every one of these dimensions decides; None where none is found."""
    kept = [(frozen.desired, frozen.inventory) for frozen in map(read, all_files())]

    def wanted(fleet: Fleet) -> bool:
        if len(fleet[1].lanes) not in LANES or len(fleet[0].aliases) not in ALIASES or fleet in kept:
            return False
        if any(WITHOUT[name](fleet) == fleet for name in dimensions):
            return False
        whole = decision(fleet)
        if whole is None or not all(decides(fleet, name, whole) for name in dimensions):
            return False
        return not _impossible(fleet)

    drawn = tuple("pairs" if name == "links" else name for name in dimensions if name != "running")
    quiet = settings(
        max_examples=TRIES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    try:
        fleet = find(fleets(sure=drawn), wanted, settings=quiet, random=Random(seed))
    except NoSuchExample:
        return None
    frozen = freeze(fleet, dimensions)
    number = 1 + max((int(path.name[:3]) for path in all_files()), default=0)
    (CORPUS / f"{number:03}-{frozen.name}.yaml").write_text(frozen.text())
    return frozen


def freeze(fleet: Fleet, dimensions: tuple[str, ...]) -> Frozen:
    """A fleet with its proven tuple, and what the planner misses there."""
    found = best(*fleet)
    if found is None:
        raise SystemExit("the oracle finds no legal outcome")
    name = "-and-".join(dimensions).lower()
    frozen = Frozen(name, dimensions, found.levels, *fleet)
    return replace(frozen, xfail=missed(frozen))


def missed(frozen: Frozen) -> str | None:
    """In what the planner or its judge differs from the proven tuple; None where they agree."""
    try:
        made = plan(frozen.desired, frozen.inventory)
    except (Refused, AssertionError) as error:
        return f"no plan: {error}"
    levels = tuple(made.verdict.levels)
    if levels != frozen.levels:
        level = next(i for i, (a, b) in enumerate(zip(levels, frozen.levels, strict=True), start=1) if a != b)
        return f"level {level}: {levels[level - 1]} instead of {frozen.levels[level - 1]}"
    codes = sorted({finding.code for finding in judge(frozen.desired, frozen.inventory, made)})
    return f"judge: {', '.join(codes)}" if codes else None


def _impossible(fleet: Fleet) -> bool:
    """Wishes that can never be met are a finding about documents, and no plan."""
    try:
        plan(*fleet)
    except Refused as refusal:
        return refusal.code == "wishImpossible"
    except AssertionError:
        return False
    return False


def recheck() -> int:
    """Prove every fleet anew, and say which the planner misses; the number of files that changed."""
    changed = 0
    for path in all_files():
        old = read(path)
        new = replace(freeze((old.desired, old.inventory), old.shows), name=path.stem[4:])
        if new != old:
            changed += 1
            path.write_text(new.text())
            print(f"{path.name}: {old.levels} {old.xfail} -> {new.levels} {new.xfail}")
    return changed


def main(arguments: list[str]) -> None:
    """Run one of the two commands of this file."""
    match arguments:
        case ["add", seed, *dimensions] if dimensions:
            frozen = add(int(seed), tuple(dimensions))
            print(f"{frozen.name} {frozen.levels} {frozen.xfail or ''}" if frozen else "none found")
        case ["recheck"]:
            print(f"{recheck()} changed")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
