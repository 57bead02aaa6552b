"""What a scenario must fulfil beyond its grammar: names that exist, devices that are free.

Pure; raises on the first thing that is wrong.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from simulator.errors import ScenarioError
from simulator.scenario import (
    DriverVersion,
    Ecc,
    Fault,
    GpuFault,
    GpuGroup,
    Holding,
    Load,
    MigLayout,
    MigSlots,
    Node,
    Pod,
    Scenario,
    SharingMode,
    Workload,
    Xid,
)
from slicewatch.hardware import GpuModel, HardwareError, model_named, placements_for
from slicewatch.suggestion import choices

# What the simulator gives PCI addresses to, and more than any server has.
MAX_GPUS_OF_A_NODE = 16

T = TypeVar("T")


def check(scenario: Scenario) -> None:
    """Check a scenario against the rules.

    Raises:
        ScenarioError: on the first rule that it breaks.
    """
    _unique("nodes", [node.name for node in scenario.nodes])
    for position, node in enumerate(scenario.nodes):
        _check_node(f"nodes[{position}]", node)
    nodes = {node.name: node for node in scenario.nodes}
    _unique("workloads", [f"{one.namespace}/{one.name}" for one in scenario.workloads])
    for position, workload in enumerate(scenario.workloads):
        _check_workload(f"workloads[{position}]", workload, nodes)
    _check_holdings(scenario)
    for position, fault in enumerate(scenario.faults):
        check_fault(f"faults[{position}]", fault, nodes)


def check_fault(where: str, fault: Fault, nodes: dict[str, Node]) -> None:
    """Check a fault against the fleet.

    Raises:
        ScenarioError: it hits what does not exist, or its times contradict each other.
    """
    node = _known(f"{where}.node", fault.node, nodes)
    event = isinstance(fault, Xid | Ecc)
    in_order = fault.lasts is None or (fault.lasts > 0 and not event)
    _require(in_order, f"{where}.for", "must be above 0, and left out for an event")
    if fault.every is not None:
        longer = fault.every > (fault.lasts or 0)
        _require(longer, f"{where}.every", "must be longer than its for")
        ends = event or fault.lasts is not None or isinstance(fault, DriverVersion | MigLayout)
        _require(ends, f"{where}.every", "needs a for, or the fault would never end")
    if isinstance(fault, GpuFault):
        group = _group(f"{where}.gpu", node, fault.gpu)
        if isinstance(fault, MigLayout):
            _require(fault.mig is not True, f"{where}.mig", "must be a list of profiles, or false")
            _check_layout(f"{where}.mig", model_named(group.model), fault.slots or ())


def _require(fulfilled: bool, where: str, what: str) -> None:
    if not fulfilled:
        raise ScenarioError(where, what)


def _unique(where: str, names: Sequence[str]) -> None:
    for position, name in enumerate(names):
        unique = name not in names[:position]
        _require(unique, f"{where}[{position}].name", f"{name!r} is already taken")


def _known(where: str, name: str, nodes: dict[str, Node]) -> Node:
    _require(name in nodes, where, f"no node {name!r}{choices(name, nodes)}")
    return nodes[name]


def _group(where: str, node: Node, gpu: int) -> GpuGroup:
    groups = node.groups()
    _require(0 <= gpu < len(groups), where, f"{node.name} has GPUs 0 to {len(groups) - 1}")
    return groups[gpu]


def _hardware(where: str, look_up: Callable[[], T]) -> T:
    try:
        return look_up()
    except HardwareError as error:
        raise ScenarioError(where, str(error)) from error


def _check_node(where: str, node: Node) -> None:
    few = len(node.groups()) <= MAX_GPUS_OF_A_NODE
    _require(few, f"{where}.gpus", f"a node has at most {MAX_GPUS_OF_A_NODE} GPUs")
    for position, group in enumerate(node.gpus):
        _check_group(f"{where}.gpus[{position}]", group)


def _check_group(where: str, group: GpuGroup) -> None:
    model = _hardware(f"{where}.model", lambda: model_named(group.model))
    _require(group.count >= 1, f"{where}.count", "must be at least 1; or leave the group out")
    if group.mig is not None:
        _check_layout(f"{where}.mig", model, group.mig)
    shared = group.sharing.mode is not SharingMode.NONE
    _require(
        shared == (group.sharing.replicas > 1),
        f"{where}.sharing.replicas",
        "must be above 1 with mode time_slicing or mps, and left out with none",
    )


def _check_layout(where: str, model: GpuModel, slots: MigSlots) -> None:
    _require(model.supports_mig, where, f"{model.name} has no MIG; leave it out")
    most = model.compute_slices
    _require(len(slots) <= most, where, f"{model.name} has only {most} MIG indices")
    _hardware(where, lambda: placements_for(model, [name for name in slots if name is not None]))


def _check_workload(where: str, workload: Workload, nodes: dict[str, Node]) -> None:
    one = workload.load is None or workload.demand is None
    _require(one, where, "has a load (of each pod) and a demand (of all); keep one")
    _check_load(f"{where}.load", workload.load, limit=1)
    _check_load(f"{where}.demand", workload.demand, limit=math.inf)
    _unique(f"{where}.pods", [pod.name for pod in workload.pods])
    for position, pod in enumerate(workload.pods):
        _check_pod(f"{where}.pods[{position}]", pod, nodes)


def _check_load(where: str, given: Load | float | None, *, limit: float) -> None:
    levels = [given] if isinstance(given, float) else []
    if isinstance(given, Load):
        one = (given.steps is None) != (given.wave is None)
        _require(one, where, "needs exactly one of steps, wave")
        times = [step.at for step in given.steps or ()]
        rising = all(earlier < later for earlier, later in pairwise(times))
        _require(rising, f"{where}.steps", "must be in the order of their times")
        longer = given.repeat is None or (times != [] and given.repeat > times[-1])
        _require(longer, f"{where}.repeat", "must come after the last of the steps")
        levels = [step.level for step in given.steps or ()]
        if given.wave is not None:
            _require(given.wave.period > 0, f"{where}.wave.period", "must be above 0")
            levels += [given.wave.low, given.wave.high]
    wanted = "0 or more" if limit == math.inf else f"between 0 and {limit:g}"
    for level in levels:
        _require(0 <= level <= limit, where, f"a level must be {wanted}, not {level:g}")


def _check_pod(where: str, pod: Pod, nodes: dict[str, Node]) -> None:
    later = pod.until is None or pod.until > pod.begin
    _require(later, f"{where}.until", "must come after the pod's from")
    fits = len(pod.pids) in (0, len(pod.devices))
    _require(fits, f"{where}.pids", "must name one process per device, or none")
    near = len({holding.node for holding in pod.devices}) <= 1
    _require(near, f"{where}.devices", "a pod runs on one node only")
    for position, holding in enumerate(pod.devices):
        _check_holding(f"{where}.devices[{position}]", holding, nodes)


def _check_holding(where: str, holding: Holding, nodes: dict[str, Node]) -> None:
    node = _known(f"{where}.node", holding.node, nodes)
    group = _group(f"{where}.gpu", node, holding.gpu)
    replica, replicas = holding.replica, group.sharing.replicas
    if replicas > 1:
        fits = replica is not None and 0 <= replica < replicas
        _require(fits, f"{where}.replica", f"must be 0 to {replicas - 1}, since the GPU is shared")
    else:
        _require(replica is None, f"{where}.replica", "must be left out, since it is not shared")
    slots = model_named(group.model).compute_slices
    fits = holding.mig is None or 0 <= holding.mig < slots
    _require(fits, f"{where}.mig", f"GPU {holding.gpu} has {slots} MIG indices")


def _check_holdings(scenario: Scenario) -> None:
    """Refuse two pods that hold the same device, or replica of it, at the same time."""
    held: dict[Holding, list[Pod]] = {}
    for w, workload in enumerate(scenario.workloads):
        for p, pod in enumerate(workload.pods):
            for d, holding in enumerate(pod.devices):
                others = held.setdefault(holding, [])
                for other in others:
                    where = f"workloads[{w}].pods[{p}].devices[{d}]"
                    _require(not _meet(pod, other), where, f"is then held by pod {other.name}")
                others.append(pod)


def _meet(one: Pod, other: Pod) -> bool:
    ends = math.inf
    return one.begin < (other.until or ends) and other.begin < (one.until or ends)
