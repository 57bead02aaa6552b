"""The recording rules of cost against accounts kept by hand, of fleets that are drawn at random.

All prices, shares and utilizations are sums of powers of two, so that every figure is exact: what
promtool compares has no tolerance.
"""

import json
import random
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed import debian
from testbed.binaries import Unavailable, binary
from testbed.require import skip_or_fail

RULES = Path(__file__).parents[2] / "alerts" / "rules" / "cost.yaml"
FLEETS = 40
MODELS = {"A100": 3.5, "H100": 4.5, "L40S": 1.5, "T4": None}
WITH_MIG = {"A100", "H100"}
# Memory slices of eight, by profile.
LAYOUTS = [{"3g": 4, "2g": 2, "1g": 1}, {"4g": 4}, {"7g": 8}, {}]
NAMESPACES = ["ml", "web", "vision"]
ASKED = [
    *[("node", what) for what in ("total", "free", "held", "used", "wasted", "unpartitioned")],
    *[("namespace", what) for what in ("held", "used", "wasted")],
]


def rule(level, what):
    return f"{level}:gpu_cost_dollars_per_hour:{what}"


@dataclass
class Fleet:
    """What is scraped of a fleet, and what has to come of it."""

    draw: random.Random
    series: dict[str, float] = field(default_factory=dict)
    expected: dict = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    # Nodes and models of which something that is held, or some MIG device, has no price.
    unpriced: set = field(default_factory=set)
    unpriced_parts: set = field(default_factory=set)
    known: bool = True
    pods: int = 0

    def show(self, name, labels, value):
        for job in self.draw.choice([("one",), ("one", "other")]):
            text = ",".join(f'{k}="{v}"' for k, v in {**labels, "job": job}.items())
            self.series[f"{name}{{{text}}}"] = value

    def count(self, level, what, labels, value):
        self.expected[rule(level, what)][tuple(labels.items())] += value


def drawn(seed):
    draw = random.Random(seed)  # noqa: S311 - it draws fleets
    fleet = Fleet(draw)
    for node in range(draw.randint(1, 3)):
        # Nodes of two clusters have the same names; some Prometheus have no such label.
        cluster = draw.choice([{}, {"cluster": "x"}, {"cluster": "y"}])
        place = {**cluster, "node": f"n{node}"}
        tenants_known = draw.random() < 0.8
        for gpu in range(draw.randint(1, 4)):
            add_gpu(fleet, {**place, "model": draw.choice([*MODELS])}, gpu, tenants_known)
        close(fleet, place, tenants_known)
    return fleet


def add_gpu(fleet, kind, gpu, tenants_known):
    draw, price = fleet.draw, MODELS[kind["model"]]
    labels = {**kind, "gpu": gpu, "uuid": f"GPU-{kind['node']}-{gpu}"}
    is_cut = kind["model"] in WITH_MIG and draw.random() < 0.5
    says = not is_cut or draw.random() < 0.9
    if says:
        fleet.show("gpu_mig_mode", {**labels, "state": "current"}, int(is_cut))
    if price is not None:
        fleet.show("gpu_price_dollars_per_hour", labels, price)
        fleet.count("node", "total", kind, price)
    if not is_cut:
        add_device(fleet, kind, labels, price, tenants_known)
        return
    if tenants_known:
        fleet.show("gpu_tenants_allocated", labels, 0)
    parts = draw.choice(LAYOUTS)
    # One that does not answer and has no parts either cannot be told from a whole one.
    if parts or says:
        fleet.count("node", "unpartitioned", kind, price)
    for number, (profile, slices) in enumerate(parts.items()):
        part = {
            **labels, "uuid": f"MIG-{kind['node']}-{gpu}-{number}", "profile": profile,
            "gpu_instance": number, "compute_instance": 0,
        }  # fmt: skip
        own = price * slices / 8 if draw.random() < 0.9 else None
        fleet.show("gpu_mig_info", {**part, "placement": f"0:{slices}"}, 1)
        if own is None:
            fleet.unpriced_parts.add(tuple(kind.items()))
        else:
            fleet.show("gpu_price_dollars_per_hour", part, own)
            fleet.count("node", "unpartitioned", kind, -own)
        add_device(fleet, kind, part, own, tenants_known)


def add_device(fleet, kind, labels, price, tenants_known):
    draw = fleet.draw
    fleet.show("gpu_tenant_info", {**tenant(fleet, labels), "source": "process"}, 1)
    if not tenants_known:
        return
    busy = draw.choice([None, 0, 0.25, 0.5, 1])
    if busy is not None:
        fleet.show("gpu_utilization", labels, 100 * busy)
    replicas = draw.choice([1, 1, 2, 4])
    fleet.show("gpu_sharing_replicas", labels, replicas)
    # A whole one may be given to several pods by one claim.
    shares = held_replicas(fleet, replicas) if replicas > 1 else [[None]] * draw.choice([0, 1, 2])
    fleet.show("gpu_tenants_allocated", labels, len(shares))
    divisor = max(replicas, sum(map(len, shares)))
    for share in shares:
        add_pod(fleet, kind, labels, share, busy, price and price * len(share) / divisor)


def held_replicas(fleet, replicas):
    """Return which replicas each pod holds; some are free."""
    taken = [number for number in range(replicas) if fleet.draw.random() < 0.7]
    cut = fleet.draw.randint(0, len(taken))
    return [share for share in (taken[:cut], taken[cut:]) if share]


def add_pod(fleet, kind, labels, share, busy, price):
    pod = tenant(fleet, labels)
    for replica in share:
        named = {} if replica is None else {"replica": replica}
        for container in fleet.draw.choice([("main",), ("main", "side")]):
            given = {**pod, **named, "container": container, "source": "kubelet"}
            fleet.show("gpu_tenant_info", given, 1)
    if price is None:
        fleet.unpriced.add(tuple(kind.items()))
        return
    cluster = {"cluster": kind["cluster"]} if "cluster" in kind else {}
    space = {**cluster, "namespace": pod["namespace"]}
    spent = {"held": price}
    if busy is not None:
        spent |= {"used": price * busy, "wasted": price * (1 - busy)}
    for what, part in spent.items():
        fleet.count("node", what, kind, part)
        fleet.count("namespace", what, space, part)


def tenant(fleet, labels):
    fleet.pods += 1
    return {**labels, "namespace": fleet.draw.choice(NAMESPACES), "pod": f"p{fleet.pods}"}


def close(fleet, place, tenants_known):
    """Balance the account of a node: what is not held is free, as far as that can be known."""
    fleet.known &= tenants_known
    for labels, total in fleet.expected[rule("node", "total")].items():
        if dict(labels[:-1]) != place:
            continue
        if tenants_known and labels not in fleet.unpriced:
            held = fleet.expected[rule("node", "held")].get(labels, 0.0)
            fleet.count("node", "free", dict(labels), total - held)
        if labels in fleet.unpriced_parts:
            fleet.expected[rule("node", "unpartitioned")].pop(labels, None)


def case(seed):
    fleet = drawn(seed)
    asks = [asked(rule(*each), fleet.expected.get(rule(*each), {})) for each in ASKED]
    if fleet.known and not fleet.unpriced and fleet.expected.get(rule("namespace", "held")):
        asks.append({
            "expr": f"sum({rule('namespace', 'held')}) + sum({rule('node', 'free')})"
            f" - sum({rule('node', 'total')})",
            "eval_time": "8m",
            "exp_samples": [{"labels": "{}", "value": 0}],
        })  # fmt: skip
    return {
        "name": f"fleet {seed}",
        "interval": "1m",
        "input_series": [{"series": s, "values": f"{v}x10"} for s, v in fleet.series.items()],
        "promql_expr_test": asks,
    }


def asked(name, found):
    samples = [
        {"labels": name + "{" + ",".join(f'{k}="{v}"' for k, v in labels) + "}", "value": value}
        for labels, value in found.items()
    ]
    return {"expr": name, "eval_time": "8m", "exp_samples": samples}


@pytest.fixture(scope="module", params=["2", "3"])
def promtool(request):
    try:
        if request.param == "2":
            return debian.program("promtool", package="prometheus")
        return str(binary("promtool"))
    except Unavailable as reason:
        skip_or_fail(str(reason))


def test_the_rules_keep_the_same_accounts_as_a_bookkeeper(promtool, tmp_path):
    file = tmp_path / "fleets.json"
    tests = [case(seed) for seed in range(FLEETS)]
    asks = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(json.dumps(asks))
    done = subprocess.run(
        [promtool, "test", "rules", file], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[:5000]


def test_the_fleets_have_all_that_an_account_can_have():
    fleets = [drawn(seed) for seed in range(FLEETS)]
    found = [sum(bool(fleet.expected.get(rule(*each))) for fleet in fleets) for each in ASKED]
    assert min(found) > FLEETS / 4
    assert sum(fleet.known and not fleet.unpriced for fleet in fleets) > FLEETS / 8
    assert any(fleet.unpriced for fleet in fleets)
    assert any(fleet.unpriced_parts for fleet in fleets)
