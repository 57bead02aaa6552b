"""What a scenario must fulfil beyond its grammar: names that exist, devices that are free.

Pure; raises on the first thing that is wrong.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from simulator.errors import ScenarioError
from simulator.language import Bytes, Load, Mix
from simulator.links import counted_errors
from simulator.memory_errors import SPARE_ROWS_OF_A_BANK
from simulator.scenario import (
    Container,
    DriverVersion,
    Ecc,
    FabricTrouble,
    Fault,
    GpuFault,
    GpuGroup,
    Holding,
    MigLayout,
    MigPending,
    MigSlots,
    Momentary,
    Node,
    NvlinkDown,
    NvlinkTrouble,
    PcieDegraded,
    PcieReplays,
    Pod,
    RowRemap,
    Scenario,
    SharingMode,
    Workload,
)
from simulator.sharing import part_of
from slicewatch.hardware import GpuModel, HardwareError, model_named, placements_for
from slicewatch.hardware.features import joins_fabric, retires_pages
from slicewatch.hardware.links import BoardLinks
from slicewatch.suggestion import choices

# What the simulator gives PCI addresses to, and more than any server has.
MAX_GPUS_OF_A_NODE = 32

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
    event = isinstance(fault, Momentary)
    in_order = fault.lasts is None or (fault.lasts > 0 and not event)
    _require(in_order, f"{where}.for", "must be above 0, and left out for an event")
    if fault.every is not None:
        longer = fault.every > (fault.lasts or 0)
        _require(longer, f"{where}.every", "must be longer than its for")
        ends = event or fault.lasts is not None or isinstance(fault, DriverVersion | MigLayout)
        _require(ends, f"{where}.every", "needs a for, or the fault would never end")
    if isinstance(fault, GpuFault):
        group = _group(f"{where}.gpu", node, fault.gpu)
        _check_board_fault(where, fault, model_named(group.model))
        _check_link_fault(where, fault, model_named(group.model).links)
        if isinstance(fault, MigPending):
            model = model_named(group.model)
            _require(
                model.supports_mig, f"{where}.gpu", f"{model.name} has no MIG; choose another"
            )
        if isinstance(fault, MigLayout):
            _require(fault.mig is not True, f"{where}.mig", "must be a list of profiles, or false")
            _check_layout(f"{where}.mig", model_named(group.model), fault.slots or ())


def _check_board_fault(where: str, fault: GpuFault, model: GpuModel) -> None:
    """Refuse memory errors and trouble that the model cannot have."""
    if isinstance(fault, Ecc):
        _require(fault.errors >= 1, f"{where}.errors", "must be at least 1")
    if isinstance(fault, RowRemap):
        spare = SPARE_ROWS_OF_A_BANK if fault.bank == "same" else fault.rows
        fits = 1 <= fault.rows <= spare
        _require(fits, f"{where}.rows", f"must be 1 to {SPARE_ROWS_OF_A_BANK} of one bank")
        remaps = not retires_pages(model)
        _require(
            remaps, f"{where}.gpu", f"{model.name} retires pages; write an ecc of double bits"
        )
    if isinstance(fault, FabricTrouble):
        joins = joins_fabric(model)
        _require(joins, f"{where}.gpu", f"{model.name} joins no fabric; choose a newer one")


def _check_link_fault(where: str, fault: GpuFault, links: BoardLinks) -> None:
    """Refuse links that the model does not have, and errors that they do not count."""
    if isinstance(fault, PcieDegraded):
        most = {"width": links.pcie_width, "generation": links.pcie_generation}
        for name, limit in most.items():
            fits = 1 <= (getattr(fault, name) or 1) <= limit
            _require(fits, f"{where}.{name}", f"must be 1 to {limit}")
    if isinstance(fault, PcieReplays):
        _require(fault.packets >= 1, f"{where}.packets", "must be at least 1")
    if isinstance(fault, NvlinkDown | NvlinkTrouble):
        there = 0 <= fault.link < links.nvlinks
        _require(there, f"{where}.link", f"the GPU has {links.nvlinks} NVLinks, from 0 on")
    if isinstance(fault, NvlinkTrouble):
        _require(fault.errors >= 1, f"{where}.errors", "must be at least 1")
        kinds = sorted(counted_errors(links, fault.link))
        known = fault.error in kinds
        _require(
            known, f"{where}.error", f"that link does not count it{choices(fault.error, kinds)}"
        )


def _require(fulfilled: bool, where: str, what: str) -> None:
    if not fulfilled:
        raise ScenarioError(where, what)


def _unique(where: str, names: Sequence[str], *, key: str = "name") -> None:
    seen: set[str] = set()
    for position, name in enumerate(names):
        _require(name not in seen, f"{where}[{position}].{key}", f"{name!r} is already taken")
        seen.add(name)


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
    if group.vgpus:
        _check_vgpus(where, group, model)


def _check_vgpus(where: str, group: GpuGroup, model: GpuModel) -> None:
    alone = group.count == 1 and group.mig is None and group.sharing.replicas == 1
    _require(alone, f"{where}.vgpus", "need a group of one GPU, without mig and sharing")
    _require(group.scheduler.time_slice > 0, f"{where}.scheduler.time_slice", "must be above 0")
    _unique(f"{where}.vgpus", [vgpu.vm for vgpu in group.vgpus], key="vm")
    for position, vgpu in enumerate(group.vgpus):
        place = f"{where}.vgpus[{position}]"
        _check_load(f"{place}.load", vgpu.load, limit=1)
        _check_mix(f"{place}.mix", vgpu.mix)
        _require(vgpu.weight >= 1, f"{place}.weight", "must be at least 1")
        later = vgpu.until is None or vgpu.until > vgpu.begin
        _require(later, f"{place}.until", "must come after its from")
        fits = 0 < vgpu.memory <= model.memory_bytes and vgpu.used <= vgpu.memory
        _require(fits, f"{place}.memory", "must be on the GPU, and used must be part of it")
        there = [o for o in group.vgpus if o.begin <= vgpu.begin < (o.until or math.inf)]
        room = sum(part_of(one, model) for one in there) <= 1 + 1e-9
        why = f"do not fit on {model.name} together, when {vgpu.vm} starts"
        _require(room, f"{where}.vgpus", why)


def _check_layout(where: str, model: GpuModel, slots: MigSlots) -> None:
    _require(model.supports_mig, where, f"{model.name} has no MIG; leave it out")
    most = model.compute_slices
    _require(len(slots) <= most, where, f"{model.name} has only {most} MIG indices")
    _hardware(where, lambda: placements_for(model, [name for name in slots if name is not None]))


def _check_workload(where: str, workload: Workload, nodes: dict[str, Node]) -> None:
    one = workload.load is None or workload.demand is None
    _require(one, where, "has a load (of each pod) and a demand (of all); keep one")
    _require(workload.processes >= 1, f"{where}.processes", "must be at least 1")
    _check_mix(f"{where}.mix", workload.mix)
    _check_load(f"{where}.load", workload.load, limit=1)
    _check_load(f"{where}.demand", workload.demand, limit=math.inf)
    _unique(f"{where}.pods", [pod.name for pod in workload.pods])
    for position, pod in enumerate(workload.pods):
        _check_pod(f"{where}.pods[{position}]", pod, workload, nodes)


def _check_mix(where: str, mix: Mix) -> None:
    for name, ratio in msgspec.structs.asdict(mix).items():
        fits = isinstance(ratio, Bytes) or 0 <= ratio <= 1
        _require(fits, f"{where}.{name}", "must be between 0 and 1, relative to the load")


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


def _check_pod(where: str, pod: Pod, workload: Workload, nodes: dict[str, Node]) -> None:
    later = pod.until is None or pod.until > pod.begin
    _require(later, f"{where}.until", "must come after the pod's from")
    one = not pod.containers or (pod.devices, pod.pids, pod.restarts) == ((), (), ())
    _require(one, where, "has containers and also describes one itself; move it to them")
    _unique(f"{where}.containers", [part.name for part in pod.parts()])
    for place, part in _containers(where, pod):
        _check_container(place, part, pod, workload, nodes)
    near = len({holding.node for holding in pod.holdings()}) <= 1
    _require(near, f"{where}.devices", "a pod runs on one node only")


def _containers(where: str, pod: Pod) -> list[tuple[str, Container]]:
    """Return the containers of a pod and where they are described."""
    if not pod.containers:
        return [(where, part) for part in pod.parts()]
    return [(f"{where}.containers[{n}]", part) for n, part in enumerate(pod.containers)]


def _check_container(
    where: str, part: Container, pod: Pod, workload: Workload, nodes: dict[str, Node]
) -> None:
    _require(part.devices != (), f"{where}.devices", "must name at least one device")
    fits = len(part.pids) in (0, len(part.devices) * workload.processes)
    _require(fits, f"{where}.pids", "must name every process of each device, or none")
    times = (pod.begin, *part.restarts, math.inf if pod.until is None else pod.until)
    rising = all(earlier < later for earlier, later in pairwise(times))
    _require(
        rising, f"{where}.restarts", "must be in order, after the pod's from and before until"
    )
    for position, holding in enumerate(part.devices):
        place = f"{where}.devices[{position}]"
        _check_holding(place, holding, nodes, host=workload.host)


def _check_holding(where: str, holding: Holding, nodes: dict[str, Node], *, host: bool) -> None:
    node = _known(f"{where}.node", holding.node, nodes)
    group = _group(f"{where}.gpu", node, holding.gpu)
    _require(not group.vgpus, f"{where}.gpu", "belongs to virtual machines; use their load")
    replica, replicas = holding.replica, group.sharing.replicas
    if replicas > 1 and not host:
        fits = replica is not None and 0 <= replica < replicas
        _require(fits, f"{where}.replica", f"must be 0 to {replicas - 1}, since the GPU is shared")
    else:
        why = "nobody allocates to the host" if host else "it is not shared"
        _require(replica is None, f"{where}.replica", f"must be left out, since {why}")
    slots = model_named(group.model).compute_slices
    fits = holding.mig is None or 0 <= holding.mig < slots
    _require(fits, f"{where}.mig", f"GPU {holding.gpu} has {slots} MIG indices")


def _check_holdings(scenario: Scenario) -> None:
    """Refuse two pods that hold the same device, or replica of it, at the same time."""
    held: dict[Holding, list[tuple[Pod, str]]] = {}
    for w, workload in enumerate(scenario.workloads):
        for p, pod in enumerate(() if workload.host else workload.pods):
            for place, part in _containers(f"workloads[{w}].pods[{p}]", pod):
                for d, holding in enumerate(part.devices):
                    held.setdefault(holding, []).append((pod, f"{place}.devices[{d}]"))
    for holders in held.values():
        holders.sort(key=lambda one: one[0].begin)
        for (earlier, _), (later, where) in pairwise(holders):
            free = earlier.until is not None and earlier.until <= later.begin
            _require(free, where, f"is then held by pod {earlier.name}")
