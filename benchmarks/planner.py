"""Measures the planner on pools from a seed, and the same instance given to HiGHS and CP-SAT.

    python benchmarks/planner.py                     every size, table and plot to docs/benchmarks/
    python benchmarks/planner.py --nodes 1000        one size, without the solvers
    python benchmarks/planner.py --nodes 100 --solvers

Each size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from msgspec.structs import replace

from benchmarks.pools import make
from lloom_gitops.checks.plan import judge
from lloom_gitops.codec import digest
from lloom_gitops.model.desired import Desired
from lloom_gitops.model.inventory import Inventory, ObservedAlias
from lloom_gitops.model.plan import Plan
from lloom_gitops.model.words import LaneState, Liveness, Residency, Seen, StepKind
from lloom_gitops.planner import plan

SIZES = {"adopt": (3, 12, 25, 30, 100, 300, 1000, 3000, 10000), "place": (3, 12, 25, 30, 100, 300)}
SOLVER_SECONDS = 120.0
COMPARED = 300
"""Nodes up to which a run over all sizes also asks the solvers."""
JUDGED = 1000
"""Nodes up to which the judge goes over the plan as well."""
DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"

FALLS_SHORT = """
## What falls short

Above about 1,500 lanes in one part (pools of 3,000 nodes and more) HiGHS only bounds, or does not run at all, and a
limited number of neighbourhoods is searched: planning such a pool again may still move a few lanes, and of its plan the
judge finds some lanes with less residency than memory forces. A solver's figures leave out what loads cost (level 6),
and above 100 nodes some of what the rules force on later entries, so they may be below what any plan can have. The
bound of *place* takes every alias by itself, with all memory to itself.
"""


@dataclass
class Row:
    """What one size gave. Times in seconds, memory in MiB; levels and bound as in the plan's verdict."""

    nodes: int
    kind: str
    lanes: int = 0
    engine: str = ""
    levels: tuple[int, ...] = ()
    bound: tuple[int, ...] | None = None
    first: float = 0.0
    again: float = 0.0
    again_moves: int = 0
    lost: float = 0.0
    lost_moves: int = 0
    displaced: int = 0
    memory: int = 0
    findings: int | None = None
    same: bool = False
    solvers: dict[str, Any] = field(default_factory=dict)


def measured(nodes: int, kind: str, seed: int, *, solvers: bool) -> Row:
    """The row of one size: a first plan, the plan of its own outcome, and the plan after one node is lost."""
    desired, inventory = make(nodes, kind, seed)
    row = Row(nodes=nodes, kind=kind, lanes=len(inventory.lanes) or len(desired.recipes))
    made, row.first = timed(desired, inventory)
    row.engine, row.levels, row.bound = made.inputs.engine, made.verdict.levels, made.verdict.bound
    row.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    row.findings = len(judge(desired, inventory, made)) if nodes <= JUDGED else None
    row.same = digest(plan(*shuffled(desired, inventory))) == digest(made) if nodes <= JUDGED else True
    if kind == "adopt":
        after = carried_out(inventory, made)
        same, row.again = timed(desired, after)
        row.again_moves = len(same.steps)
        gone = replace(after, nodes={**after.nodes, lost_node(after): lost(after, lost_node(after))})
        new, row.lost = timed(desired, gone)
        row.lost_moves = new.verdict.start + new.verdict.stop
        row.displaced = sum(lost_node(after) in lane.nodes for lane in after.lanes.values())
    if solvers:
        row.solvers = dict(solved(desired, inventory, row.first))
    return row


def timed(desired: Desired, inventory: Inventory) -> tuple[Plan, float]:
    """A plan and the seconds it took."""
    start = time.perf_counter()
    made = plan(desired, inventory)
    return made, round(time.perf_counter() - start, 3)


def shuffled(desired: Desired, inventory: Inventory) -> tuple[Desired, Inventory]:
    """The same pool with every map in the opposite order."""

    def back(table: dict[str, Any]) -> dict[str, Any]:
        return dict(reversed(list(table.items())))

    return (
        replace(desired, aliases=back(desired.aliases), nodes=back(desired.nodes), recipes=back(desired.recipes)),
        replace(inventory, nodes=back(inventory.nodes), lanes=back(inventory.lanes), aliases=back(inventory.aliases)),
    )


def carried_out(inventory: Inventory, made: Plan) -> Inventory:
    """The inventory after every step of a plan."""
    lanes, aliases = dict(inventory.lanes), dict(inventory.aliases)
    for step in made.steps:
        if step.kind is StepKind.ROUTE and step.alias is not None:
            aliases[step.alias] = ObservedAlias(route=step.route or (), lanes=step.lanes)
        elif step.lane in lanes:
            lane = lanes[step.lane]
            if step.kind is StepKind.START:
                lane = replace(lane, state=LaneState.RUNNING, residency=step.residency or Residency.AUTO)
            elif step.kind is StepKind.STOP:
                lane = replace(lane, state=LaneState.STOPPED)
            elif step.kind is StepKind.RESIDENCY and step.residency is not None:
                lane = replace(lane, residency=step.residency)
            lanes[step.lane] = lane
    return replace(inventory, lanes=lanes, aliases=aliases)


def lost_node(inventory: Inventory) -> str:
    """The node with the most running lanes that is not the head (the first by id)."""
    count = dict.fromkeys(sorted(inventory.nodes)[1:], 0)
    for lane in inventory.lanes.values():
        for node in lane.nodes if lane.state is LaneState.RUNNING else ():
            if node in count:
                count[node] += 1
    return max(count, key=lambda node: (count[node], node))


def lost(inventory: Inventory, node: str) -> Any:
    return replace(inventory.nodes[node], seen=Seen.UNKNOWN, liveness=Liveness.LOST)


# -- solvers ----------------------------------------------------------------------------------------------------------


def solved(desired: Desired, inventory: Inventory, seconds: float) -> Iterator[tuple[str, Any]]:
    """Levels 1 to 6 that HiGHS and CP-SAT reach on the whole instance in the planner's time, and in 120 s.

    The programme leaves out what loads cost and some of what memory rules force on later entries, so a solver's figures
    may be below what any plan can have.
    """
    from benchmarks.solvers import cp_sat, highs, programme_of

    programme = programme_of(desired, inventory)
    for name, run in (("HiGHS", highs), ("CP-SAT", cp_sat)):
        for limit in (max(0.1, seconds), SOLVER_SECONDS):
            start = time.perf_counter()
            levels = run(programme, limit)
            yield f"{name}, {limit:.1f} s", {"levels": levels, "seconds": round(time.perf_counter() - start, 1)}


# -- report -----------------------------------------------------------------------------------------------------------


def gap(row: Row) -> str:
    """Distance from the bound of the first level that is above it, in percent: later bounds presuppose the earlier."""
    if row.bound is None:
        return "proven"
    for number, (level, least) in enumerate(zip(row.levels, row.bound, strict=False), 1):
        if level != least:
            return f"level {number} within {100 * (level - least) / max(1, abs(least)):.2f} %"
    return "levels 1 to 5 at the bound"


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    head = (
        "| pool | lanes | engine | first plan | nothing changed | one node lost | memory | levels 1 to 5 | against the "
        "bound |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    lines = [
        f"| {row.nodes} {row.kind} | {row.lanes} | {row.engine} | {row.first} s | {row.again} s, "
        f"{row.again_moves} moves | {row.lost} s, {row.lost_moves} starts and stops for {row.displaced} lanes "
        f"| {row.memory} MiB | {', '.join(map(str, row.levels[:5]))} | {gap(row)} |"
        for row in rows
    ]
    solver_lines = [
        f"| {row.nodes} {row.kind} | {name} | {result['seconds']} s | {', '.join(map(str, result['levels']))} "
        f"| {', '.join(map(str, row.levels[:6]))} |"
        for row in rows
        for name, result in row.solvers.items()
    ]
    text = head + "\n".join(lines) + "\n"
    if solver_lines:
        text += "\n## The same instance given to solvers\n\n| pool | solver, limit | took | its levels | ours |\n"
        text += "| --- | --- | --- | --- | --- |\n" + "\n".join(solver_lines) + "\n"
    return text


def plot(rows: list[Row]) -> str:
    """Seconds of a first plan against nodes, both on a logarithmic scale, as SVG."""
    from math import log10

    def place(nodes: int, seconds: float) -> tuple[float, float]:
        return 60 + 130 * log10(nodes), 230 - 50 * (log10(max(seconds, 0.001)) + 3)

    shapes = []
    for value in (0.001, 0.01, 0.1, 1, 10, 100):
        _, y = place(1, value)
        shapes.append(f'<line x1="60" x2="600" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        shapes.append(f'<text x="54" y="{y + 4:.0f}" text-anchor="end">{value:g} s</text>')
    for colour, name, pick in (("#0969da", "first plan", "first"), ("#1a7f37", "nothing changed", "again")):
        chosen = [row for row in rows if row.kind == "adopt"]
        points = [place(row.nodes, getattr(row, pick)) for row in chosen]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        shapes += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = 20 if pick == "first" else 36
        shapes.append(f'<text x="80" y="{y}" fill="{colour}">{name}</text>')
    for row in rows:
        if row.kind == "adopt":
            shapes.append(f'<text x="{place(row.nodes, 1)[0]:.0f}" y="250" text-anchor="middle">{row.nodes}</text>')
    body = "\n".join(shapes)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 260" font-family="sans-serif" font-size="11" '
        f'role="img" aria-label="Seconds a plan takes, by nodes of the pool">\n{body}\n</svg>\n'
    )


def write(rows: list[Row], seed: int) -> None:
    """The table and the plot of a run over every size."""
    DOCS.mkdir(parents=True, exist_ok=True)
    intro = (
        "# The planner on pools of 3 to 10,000 nodes\n\n"
        f"Made by `python benchmarks/planner.py` from seed {seed}, in one process on two cores, without tracing. The "
        "pools mix Sparks with pair and ring links, CUDA servers with 1 to 8 devices, and Macs of 32 to 512 GB; 1.7 "
        "models a node want 80 % of the memory. *adopt* is a pool that runs, *place* the same models as recipes to "
        "install. Levels are those of the objective; a gap is the distance from a proven lower bound.\n\n"
        "![Seconds a plan takes](planner.svg)\n\n"
    )
    (DOCS / "planner.md").write_text(intro + table(rows) + FALLS_SHORT)
    (DOCS / "planner.svg").write_text(plot(rows))


def in_own_process(nodes: int, kind: str, seed: int, *, solvers: bool) -> Row:
    """One size in a fresh interpreter."""
    command = [sys.executable, __file__, "--nodes", str(nodes), "--kind", kind, "--seed", str(seed), "--json"]
    answer = subprocess.run(command + ["--solvers"] * solvers, check=True, capture_output=True, text=True).stdout
    return Row(**json.loads(answer.splitlines()[-1]))


def main() -> None:
    """Command line of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, help="one size only")
    parser.add_argument("--kind", choices=sorted(SIZES), default="adopt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--solvers", action="store_true", help="give the same instance to HiGHS and CP-SAT")
    parser.add_argument("--json", action="store_true", help="print the row as JSON")
    parser.add_argument("--up-to", type=int, default=10_000, help="the largest size of a run over all")
    given = parser.parse_args()
    if given.nodes is not None:
        row = measured(given.nodes, given.kind, given.seed, solvers=given.solvers)
        print(json.dumps(asdict(row)) if given.json else table([row]).rstrip())
        return
    rows = []
    for kind, sizes in SIZES.items():
        for nodes in (size for size in sizes if size <= given.up_to):
            rows.append(
                in_own_process(nodes, kind, given.seed, solvers=given.solvers and kind == "adopt" and nodes <= COMPARED)
            )
            print(table(rows[-1:]).splitlines()[2])
    write(rows, given.seed)


if __name__ == "__main__":
    main()
