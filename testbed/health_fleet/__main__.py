"""``python -m testbed.health_fleet``: a month of a thousand nodes, well and with real faults.

Nodes are spread over clusters, each a process with a budget of its own. The exit status is 1 if a
healthy node was cordoned, a fault was not found, or a cordon was left over.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Final

from bench import host
from testbed.health_fleet import fleet
from testbed.health_fleet.fleet import Outcome, Plan

NODES: Final = 1000
DAYS: Final = 30.0
# What a monitor may cost the API server.
MOST_WRITES_PER_HOUR: Final = 12.0


def main(arguments: Sequence[str]) -> int:
    """Let fleets live, print what came of it and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m testbed.health_fleet", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"{NODES} by default")
    parser.add_argument("--days", type=float, default=DAYS, help=f"{DAYS:g} by default")
    parser.add_argument("--seed", default="fleet", help="another one makes another fleet")
    parser.add_argument("--clusters", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", choices=["healthy", "faulty"], help="one of the two fleets")
    chosen = parser.parse_args(arguments)
    plan = Plan(nodes=chosen.nodes, days=chosen.days, seed=chosen.seed)
    print(f"{host.description()}\n")
    harms: list[str] = []
    for name, faults in (("healthy", False), ("faulty", True)):
        if chosen.only in {None, name}:
            harms += _lived(name, replace(plan, faults=faults), chosen.clusters)
    for harm in harms:
        print(f"HARM: {harm}")
    return int(bool(harms))


def _lived(name: str, plan: Plan, clusters: int) -> list[str]:
    began = time.monotonic()
    outcome = _together(plan, clusters)
    print(f"{name} ({time.monotonic() - began:,.0f} s):")
    for line in fleet.lines(outcome):
        print(line)
    print(flush=True)
    harms = outcome.harms()
    if outcome.writes_per_hour() > MOST_WRITES_PER_HOUR:
        harms.append(f"more than {MOST_WRITES_PER_HOUR:g} writes per node and hour")
    return harms


def _together(plan: Plan, clusters: int) -> Outcome:
    """Let the nodes of a plan live in so many clusters at the same time."""
    bounds = [plan.nodes * number // clusters for number in range(clusters + 1)]
    parts = [replace(plan, nodes=end - first) for first, end in pairwise(bounds)]
    outcome = Outcome()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(clusters, mp_context=context) as pool:
        for part in pool.map(fleet.alone, parts, bounds[:-1]):
            outcome.add(part)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
