"""What a scenario must fulfil beyond its grammar: names that exist, devices that are free.

Pure; raises on the first thing that is wrong.
"""

from collections.abc import Callable, Iterable, Sequence
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
from slicewatch.hardware import GpuModel, HardwareError, model_named, placements_for, suggest

# What the simulator gives PCI addresses to, and more than any server has.
MAX_GPUS_OF_A_NODE = 16

T = TypeVar("T")


def check(scenario: Scenario) -> None:
    """Hold a scenario against the rules.

    Raises:
        ScenarioError: on the first rule that it breaks.
    """
    if scenario.sample_period <= 0 or scenario.samples_kept < 1:
        raise ScenarioError("sample_period", "must be positive, as must samples_kept")
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


def _unique(where: str, names: Sequence[str]) -> None:
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ScenarioError(f"{where}[{position}].name", f"{name!r} is there already")


def _known(where: str, name: str, nodes: dict[str, Node]) -> Node:
    if name not in nodes:
        raise ScenarioError(where, f"no node {name!r}{suggest(name, list(nodes))}")
    return nodes[name]


def _check_node(where: str, node: Node) -> None:
    if len(node.groups()) > MAX_GPUS_OF_A_NODE:
        raise ScenarioError(f"{where}.gpus", f"at most {MAX_GPUS_OF_A_NODE} GPUs on a node")
    for position, group in enumerate(node.gpus):
        _check_group(f"{where}.gpus[{position}]", group)


def _check_group(where: str, group: GpuGroup) -> None:
    model = _hardware(f"{where}.model", lambda: model_named(group.model))
    if group.count < 1:
        raise ScenarioError(f"{where}.count", "must be at least 1; leave the group out instead")
    if group.mig is not None:
        check_layout(f"{where}.mig", model, group.mig)
    shared = group.sharing.mode is not SharingMode.NONE
    if shared != (group.sharing.replicas > 1):
        raise ScenarioError(
            f"{where}.sharing.replicas",
            "must be above 1 with mode time_slicing or mps, and left out with none",
        )


def check_layout(where: str, model: GpuModel, slots: MigSlots) -> None:
    """Hold a MIG layout against the model.

    Raises:
        ScenarioError: the model has no MIG, or the layout finds no place on it.
    """
    if not model.supports_mig:
        raise ScenarioError(where, f"{model.name} has no MIG; leave it out")
    if len(slots) > model.compute_slices:
        raise ScenarioError(where, f"{model.name} has {model.compute_slices} MIG indices only")
    names = [name for name in slots if name is not None]
    _hardware(where, lambda: placements_for(model, names))


def _hardware(where: str, look_up: Callable[[], T]) -> T:
    try:
        return look_up()
    except HardwareError as error:
        raise ScenarioError(where, str(error)) from error


def _check_workload(where: str, workload: Workload, nodes: dict[str, Node]) -> None:
    if workload.load is not None and workload.demand is not None:
        raise ScenarioError(where, "has a load (of each pod) and a demand (of all); keep one")
    _check_load(f"{where}.load", workload.load, limit=1)
    _check_load(f"{where}.demand", workload.demand, limit=None)
    _unique(f"{where}.pods", [pod.name for pod in workload.pods])
    for position, pod in enumerate(workload.pods):
        _check_pod(f"{where}.pods[{position}]", pod, nodes)


def _check_load(where: str, given: Load | float | None, *, limit: float | None) -> None:
    if given is None:
        return
    form = given if isinstance(given, Load) else Load(constant=given)
    forms = (form.constant, form.steps, form.ramp, form.wave)
    if sum(one is not None for one in forms) != 1:
        raise ScenarioError(where, "needs exactly one of constant, steps, ramp, wave")
    if (form.wave and form.wave.period <= 0) or (form.ramp and form.ramp.over <= 0):
        raise ScenarioError(where, "the period of a wave and the length of a ramp are above 0")
    times = [step.at for step in form.steps or ()]
    if any(later <= earlier for earlier, later in pairwise(times)):
        raise ScenarioError(f"{where}.steps", "must be in the order of their times")
    if form.repeat is not None and (not times or form.repeat <= times[-1]):
        raise ScenarioError(f"{where}.repeat", "must come after the last of some steps")
    for level in _levels(form):
        if level < 0 or (limit is not None and level > limit):
            wanted = "0 or more" if limit is None else "between 0 and 1"
            raise ScenarioError(where, f"a level is {wanted}, not {level:g}")


def _levels(form: Load) -> Iterable[float]:
    if form.constant is not None:
        yield form.constant
    for step in form.steps or ():
        yield step.level
    if form.ramp is not None:
        yield from (form.ramp.first, form.ramp.last)
    if form.wave is not None:
        yield from (form.wave.low, form.wave.high)


def _check_pod(where: str, pod: Pod, nodes: dict[str, Node]) -> None:
    if pod.until is not None and pod.until <= pod.begin:
        raise ScenarioError(f"{where}.until", "must come after the pod's from")
    if pod.pids and len(pod.pids) != len(pod.devices):
        raise ScenarioError(f"{where}.pids", "must name one process for each device, or none")
    if len({holding.node for holding in pod.devices}) > 1:
        raise ScenarioError(f"{where}.devices", "a pod runs on one node only")
    for position, holding in enumerate(pod.devices):
        _check_holding(f"{where}.devices[{position}]", holding, nodes)


def _check_holding(where: str, holding: Holding, nodes: dict[str, Node]) -> None:
    node = _known(f"{where}.node", holding.node, nodes)
    group = _group(f"{where}.gpu", node, holding.gpu)
    replicas = group.sharing.replicas
    if (holding.replica is not None) != (replicas > 1):
        need = f"needs a replica, 0 to {replicas - 1}" if replicas > 1 else "has no replicas"
        raise ScenarioError(f"{where}.replica", f"GPU {holding.gpu} of {node.name} {need}")
    if holding.replica is not None and not 0 <= holding.replica < replicas:
        raise ScenarioError(f"{where}.replica", f"must be 0 to {replicas - 1}")
    slots = model_named(group.model).compute_slices
    if holding.mig is not None and not 0 <= holding.mig < slots:
        raise ScenarioError(f"{where}.mig", f"GPU {holding.gpu} has {slots} MIG indices")


def _group(where: str, node: Node, gpu: int) -> GpuGroup:
    groups = node.groups()
    if not 0 <= gpu < len(groups):
        raise ScenarioError(where, f"{node.name} has the GPUs 0 to {len(groups) - 1}")
    return groups[gpu]


def _check_holdings(scenario: Scenario) -> None:
    """Refuse two pods that hold the same device, or replica of it, at the same time."""
    held: dict[tuple[str, int, int | None, int | None], list[tuple[str, Pod]]] = {}
    for w, workload in enumerate(scenario.workloads):
        for p, pod in enumerate(workload.pods):
            for d, one in enumerate(pod.devices):
                where = f"workloads[{w}].pods[{p}].devices[{d}]"
                others = held.setdefault((one.node, one.gpu, one.mig, one.replica), [])
                for _, other in others:
                    if _meet(pod, other):
                        raise ScenarioError(where, f"is held by pod {other.name} at that time")
                others.append((where, pod))


def _meet(one: Pod, other: Pod) -> bool:
    ends = float("inf")
    return one.begin < (other.until or ends) and other.begin < (one.until or ends)


def check_fault(where: str, fault: Fault, nodes: dict[str, Node]) -> None:
    """Hold a fault against the fleet.

    Raises:
        ScenarioError: it hits what is not there, or its times contradict each other.
    """
    node = _known(f"{where}.node", fault.node, nodes)
    if fault.lasts is not None and (isinstance(fault, Xid | Ecc) or fault.lasts <= 0):
        raise ScenarioError(f"{where}.for", "is above 0, and left out for an event")
    if fault.every is not None and fault.every <= (fault.lasts or 0):
        raise ScenarioError(f"{where}.every", "must be longer than its for")
    lasting = not isinstance(fault, Xid | Ecc | DriverVersion | MigLayout)
    if fault.every is not None and fault.lasts is None and lasting:
        raise ScenarioError(f"{where}.every", "needs a for: it would never be over")
    if isinstance(fault, GpuFault):
        group = _group(f"{where}.gpu", node, fault.gpu)
        if isinstance(fault, MigLayout):
            _check_new_layout(f"{where}.mig", group, fault)


def _check_new_layout(where: str, group: GpuGroup, fault: MigLayout) -> None:
    if fault.mig is True:
        raise ScenarioError(where, "is a list of profiles, or false")
    check_layout(where, model_named(group.model), fault.slots or ())
