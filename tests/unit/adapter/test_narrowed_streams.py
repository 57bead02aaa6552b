"""The adapter asks for the families that it reads, and misses none of what it does not receive."""

import pytest

from adapter.allocation import Allocation
from adapter.history import FAMILIES as KEPT
from adapter.join import Join
from adapter.query import SERVED
from adapter.served import Served
from adapter.sources.request import FAMILIES, PATH
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Scope
from slicewatch.wire.snapshot import Column, Frame, Snapshot, encode, narrowed
from testbed import fleet

LAYOUT = fleet.layout(
    [fleet.gpu(0), fleet.mig(1, 3)],
    [
        fleet.tenant("GPU-n1-0", "a"),
        fleet.tenant("GPU-n1-0", "b"),
        fleet.tenant("MIG-n1-1-3", "a"),
    ],
)
PODS = {pod.key: pod for pod in (fleet.web("a", "n1"), fleet.web("b", "n1"))}


def whole() -> Snapshot:
    """Return a snapshot with a value of its own for every series that anything is served from."""
    of_tenants = {metric.name for metric in CATALOG if metric.scopes == {Scope.TENANT}}
    names = {m.name for m in CATALOG} | {s.column for s in SERVED.values()} - {""}
    devices: dict[str, Column] = {
        name: [0.1 + n / 1000, 0.2 + n / 1000] for n, name in enumerate(sorted(names - of_tenants))
    }
    tenants: dict[str, Column] = {
        name: [0.3 + n / 1000, 0.1, 0.2] for n, name in enumerate(sorted(of_tenants))
    }
    return fleet.snapshot(LAYOUT, devices, tenant_values=tenants, shares="processes")


@pytest.mark.parametrize("served", SERVED.values(), ids=lambda served: served.name)
def test_every_name_has_the_same_values_from_the_families_that_are_asked_for(
    served: Served,
) -> None:
    everything = whole()
    less = narrowed(everything, FAMILIES)
    of_all, of_less = (Join(Allocation(LAYOUT, PODS), shot) for shot in (everything, less))
    for pod in PODS:
        assert of_less.pod(pod, served) == of_all.pod(pod, served)
    assert any(part.value is not None for part in of_all.pod(("ml", "a"), served).parts)
    assert of_less.node(served) == of_all.node(served)


def test_what_is_asked_for_is_a_small_part_and_fits_into_a_request_line() -> None:
    everything = whole()
    sent = len(encode(Frame(snapshot=narrowed(everything, FAMILIES))))
    assert sent < len(encode(Frame(snapshot=everything))) / 2
    assert len(PATH) < 4000
    assert KEPT < FAMILIES
    assert {metric.name for metric in CATALOG} >= FAMILIES
