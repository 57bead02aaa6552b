"""Who uses a GPU, from true processes in true containers to the exporter's series.

The driver reports the PIDs of the programs that run; what they are called, the exporter has from
procfs, cgroups, the kubelet's links and its PodResources. What is expected comes from elsewhere:
names from the API server, PIDs from the container runtime, devices from the process itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from testbed import require
from testbed.binaries import Unavailable
from testbed.chain import manifests, tenants
from testbed.chain.expected import TOLERANCE, Case, Expected, differences, table
from testbed.chain.page import BUSY_RATIO, BUSY_SECONDS, MEMORY, SAMPLED_SECONDS, Page, Row, Served
from testbed.chain.tenants import ContainerName, TenantChain
from testbed.cluster.cluster import Cluster
from testbed.cluster.waiting import ClusterError
from testbed.dra import driver as dra_driver
from testbed.load.manifests import container, pod
from testbed.load.processes import Demand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAMESPACE = manifests.WORKLOADS
SETTLE_SECONDS = 60
# Some ticks, and less than the five seconds after which the kubelet is asked again.
AT_ONCE_SECONDS = 4
HOST = ContainerName("", "")


def demand(percent: int, mebibytes: int) -> Demand:
    return Demand(share=percent / 100, memory_bytes=mebibytes * 2**20)


CLAIMED = {"resource": "gpu.nvidia.com", "claim_namespace": NAMESPACE, "source": "kubelet"}
SHARED = {"resource": tenants.SHARED, "source": "kubelet"}
WHOLE = {"resource": manifests.GPU, "source": "kubelet"}

CASES = {
    ("pair", "left"): Case(demand=demand(63, 20_000), labels=WHOLE),
    ("pair", "right"): Case(demand=demand(36, 9_000), labels=WHOLE),
    ("wide", "main"): Case(demand=demand(85, 31_000), labels=WHOLE, devices=2),
    ("shared-a", "main"): Case(demand=demand(24, 4_100), labels=SHARED),
    ("shared-b", "main"): Case(demand=demand(30, 4_200), labels=SHARED),
    ("shared-c", "main"): Case(demand=demand(17, 4_300), labels=SHARED),
    ("shared-idle", "main"): Case(demand=demand(0, 400), labels=SHARED),
    ("slices", "encoder"): Case(
        demand=demand(50, 12_000), labels={"resource": tenants.MIG}, shares_known=False
    ),
    ("slices", "ranker"): Case(
        demand=demand(40, 7_000), labels={"resource": tenants.OTHER_MIG}, shares_known=False
    ),
    ("claimed", "worker"): Case(demand=demand(44, 16_000), labels=CLAIMED),
    ("claimed-mig", "worker"): Case(
        demand=demand(20, 3_000), labels=CLAIMED, shares_known=False
    ),
    ("visitor", "main"): Case(demand=demand(21, 2_000), labels={"source": "process"}),
    HOST: Case(demand=demand(27, 1_500)),
}  # fmt: skip


def shared_pod(name: str, needs: Demand, **options: Any) -> dict[str, Any]:
    """Return a pod with one container on a replica of the shared GPU."""
    return pod(NAMESPACE, name, container("main", needs, limits={tenants.SHARED: 1}), **options)


def claiming_pod(name: str, claim: str, device: str, needs: Demand) -> dict[str, Any]:
    worker = container("worker", needs, claim="accelerator", devices=[device])
    return pod(NAMESPACE, name, worker, claims={"accelerator": claim})


def workloads(devices: tenants.Devices) -> Iterator[dict[str, Any]]:
    """Yield the pods of ``CASES``."""

    def one(pod_name: str, name: str, **options: Any) -> dict[str, Any]:
        return container(name, CASES[pod_name, name].demand, **options)

    gpu, mig, other = {manifests.GPU: 1}, {tenants.MIG: 1}, {tenants.OTHER_MIG: 1}
    pair = one("pair", "left", limits=gpu), one("pair", "right", limits=gpu)
    slices = one("slices", "encoder", limits=mig), one("slices", "ranker", limits=other)
    yield pod(NAMESPACE, "pair", *pair)
    yield pod(NAMESPACE, "wide", one("wide", "main", limits={manifests.GPU: 2}))
    yield pod(NAMESPACE, "slices", *slices)
    yield pod(NAMESPACE, "visitor", one("visitor", "main", devices=[devices.unmanaged]))
    for name in ("shared-a", "shared-b", "shared-c", "shared-idle"):
        yield shared_pod(name, CASES[name, "main"].demand)
    for name, claim, device in (
        ("claimed", tenants.GPU_CLAIM, devices.claimed),
        ("claimed-mig", tenants.MIG_CLAIM, devices.claimed_mig),
    ):
        yield claiming_pod(name, claim, device, CASES[name, "worker"].demand)


@pytest.fixture(scope="module")
def chain() -> Iterator[TenantChain]:
    try:
        Cluster.prepare()
    except Unavailable as missing:
        require.skip_or_fail(str(missing))
    with Cluster.start() as cluster, TenantChain(cluster) as chain:
        cluster.apply(list(workloads(chain.devices)))
        chain.host_process(CASES[HOST].demand, chain.devices.unmanaged)
        wanted = CASES.keys() - {HOST}
        cluster.until(
            lambda: wanted <= chain.container_pids().keys(),
            what=f"{len(wanted)} containers to run",
            log="kubelet",
        )
        yield chain


def expected_rows(chain: TenantChain) -> dict[Row, Expected]:
    """Return all rows that have to be served, while only the pods of ``CASES`` run."""
    containers = {pid: name for name, pid in chain.container_pids().items()}
    rows = {}
    for process in chain.load_processes():
        name = containers.get(process.pid, HOST)
        case = CASES[name]
        assert process.demand == case.demand
        assert len(process.devices) == case.devices
        for device in process.devices:
            namespace = NAMESPACE if name != HOST else ""
            rows[Row(device, namespace, *name)] = Expected(pid=process.pid, case=case)
    return rows


def settled(chain: TenantChain, rows: Mapping[Row, Expected]) -> Page:
    """Return the first page that serves these rows and no other."""
    last: list[str] = []

    def attempt() -> Page | None:
        page = chain.page()
        last[:] = differences(rows, page)
        return None if last else page

    try:
        return chain.cluster.until(attempt, what="the rows", seconds=SETTLE_SECONDS)
    except ClusterError as error:
        raise AssertionError("\n".join(last)) from error


@pytest.fixture(scope="module")
def spell(chain: TenantChain) -> tuple[Page, Page]:
    """Two pages with a whole window of samples between them."""
    before = settled(chain, expected_rows(chain))
    began = before.of_device(SAMPLED_SECONDS)

    def after() -> Page | None:
        page = chain.page()
        until = page.of_device(SAMPLED_SECONDS)
        passed = min(until[device] - seconds for device, seconds in began.items())
        return page if passed >= tenants.WINDOW_SECONDS else None

    return before, chain.cluster.until(after, what="a window of samples", log="exporter")


def rows_of(page: Page, pod_name: str) -> dict[Row, Served]:
    return {row: served for row, served in page.tenants.items() if row.pod == pod_name}


@contextmanager
def running(chain: TenantChain, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Run a pod of one container, ``main``, for a while; yield its name."""
    name = manifest["metadata"]["name"]
    chain.cluster.apply([manifest])
    try:
        main = ContainerName(name, "main")
        chain.cluster.until(lambda: main in chain.container_pids(), what=f"pod {name}")
        yield name
    finally:
        delete(chain, name)


def delete(chain: TenantChain, pod_name: str) -> None:
    arguments = (f"--namespace={NAMESPACE}", "--ignore-not-found", "--timeout=30s")
    chain.cluster.kubectl("delete", "pod", pod_name, *arguments)


def only_row(page: Page, pod_name: str) -> Served:
    """Return what is served of a pod that has one row at most; nothing without."""
    found = list(rows_of(page, pod_name).values())
    assert len(found) <= 1
    return found[0] if found else Served(labels={}, values={})


def counted(chain: TenantChain, pod_name: str, *, more_than: float) -> Served:
    """Return the one row of a pod once it was busy for longer and the kubelet named its device.

    Its processes are seen first: the kubelet is asked every five seconds.
    """

    def attempt() -> Served | None:
        served = only_row(chain.page(), pod_name)
        busy = served.values.get(BUSY_SECONDS, 0.0)
        return served if busy > more_than and served.labels["source"] == "kubelet" else None

    return chain.cluster.until(attempt, what=f"{pod_name} to be busy", log="exporter", seconds=30)


def test_every_container_is_served_what_its_own_processes_use(
    chain: TenantChain, spell: tuple[Page, Page]
) -> None:
    """Shares, memory and names are those of the processes, on every kind of device.

    Reports: dcgm-exporter #151, #201, #307 (replicas have no pod), #587 (every pod has the
    device's value), #144 (no values by process), #577, #272 (MIG instances have no pod),
    #127, #138 (a pod without the resource has no name), HAMi #863 (containers of one pod with a
    GPU each), HAMi #445 (one process on two GPUs is seen on one), HAMi #1794 (nothing of an idle
    container), dcgm-exporter #349 (ids of the kubelet that are of another kind).
    """
    rows, (_, page) = expected_rows(chain), spell
    print(table(rows, page))
    assert differences(rows, page) == []
    assert len(rows) == sum(case.devices for case in CASES.values())
    assert {row.device for row in rows} >= {*chain.devices.whole, chain.devices.shared}
    replicas = {
        served.labels["replica"] for row, served in page.tenants.items()
        if row.device == chain.devices.shared
    }  # fmt: skip
    assert len(replicas) == 4


def test_busy_seconds_grow_by_the_share_of_the_time_that_was_sampled(
    chain: TenantChain, spell: tuple[Page, Page]
) -> None:
    before, after = (page.tenants for page in spell)
    began, ended = (page.of_device(SAMPLED_SECONDS) for page in spell)
    known = {r: one for r, one in expected_rows(chain).items() if one.case.shares_known}
    assert len(known) == sum(case.devices for case in CASES.values() if case.shares_known)
    for row, expected in known.items():
        busy = after[row].values[BUSY_SECONDS] - before[row].values[BUSY_SECONDS]
        share = busy / (ended[row.device] - began[row.device])
        assert share == pytest.approx(expected.case.demand.share, abs=TOLERANCE), row


def test_values_of_a_board_stand_once_and_name_no_pod(
    chain: TenantChain, spell: tuple[Page, Page]
) -> None:
    """Power is the board's, and a GPU is there without tenants, too.

    Reports: dcgm-exporter #582 (the same power on all pods), #549, #611 (idle GPUs are missing).
    """
    _, page = spell
    for metric in ("gpu_up", "gpu_power_usage_watts"):
        series = [sample.labels for sample in page.samples(metric)]
        boards = [labels["gpu"] for labels in series if "gpu_instance" not in labels]
        assert sorted(boards) == sorted(str(gpu.index) for gpu in chain.node.gpus)
        assert not any("pod" in labels or "namespace" in labels for labels in series)


def test_the_device_is_as_busy_as_its_tenants_are_together(
    chain: TenantChain, spell: tuple[Page, Page]
) -> None:
    _, page = spell
    shared = chain.devices.shared
    together = sum(
        CASES[name, "main"].demand.share for name in ("shared-a", "shared-b", "shared-c")
    )
    assert page.of_device("gpu_utilization")[shared] == pytest.approx(100 * together, abs=5)
    assert page.of_device("gpu_tenants_allocated")[shared] == 4
    assert page.of_device("gpu_sharing_replicas")[shared] == tenants.REPLICAS
    assert page.of_device("gpu_unattributed_busy_ratio")[shared] == 0


def test_a_claim_is_named_with_its_device_and_pod(
    chain: TenantChain, spell: tuple[Page, Page]
) -> None:
    """Slices say which device a claim has, be it by uuid or by its place on another.

    Reports: dcgm-exporter #714 (a MIG device that is made for a claim has no row), #718 (no uid of
    the pod under DRA).
    """
    _, page = spell
    for name in ("claimed", "claimed-mig"):
        ((_, served),) = rows_of(page, name).items()
        found = chain.cluster.get("pod", name, f"--namespace={NAMESPACE}")
        (status,) = found["status"]["resourceClaimStatuses"]
        assert served.labels["claim"] == status["resourceClaimName"]
        assert served.labels["pod_uid"] == found["metadata"]["uid"]


def test_all_processes_of_a_container_are_one_tenant(chain: TenantChain) -> None:
    """A process that joins a container adds to it. Reports: dcgm-exporter #144."""
    first, second = demand(6, 100), demand(9, 50)
    with running(chain, shared_pod("twofold", first)) as name:
        program = chain.cluster.kubectl_command("exec", name, f"--namespace={NAMESPACE}")
        joined = chain.cluster.popen([*program, "--", "/pause", *second.arguments()], log="exec")

        def together() -> bool:
            joined.require_alive()
            served = only_row(chain.page(), name).values
            memory, ratio = served.get(MEMORY), served.get(BUSY_RATIO, 0.0)
            share = first.share + second.share
            return (
                memory == first.memory_bytes + second.memory_bytes
                and abs(ratio - share) <= TOLERANCE
            )

        chain.cluster.until(together, what="both processes to count", log="exec", seconds=40)
    joined.wait(timeout=20)


def test_a_restarted_container_goes_on_counting_under_the_same_names(chain: TenantChain) -> None:
    """The kubelet starts a killed process anew: another PID, the same series.

    Reports: dcgm-exporter #428 (two identities of one series, and gaps between them).
    """
    with running(chain, shared_pod("restarted", demand(9, 600))) as name:
        main = ContainerName(name, "main")
        before, pid = counted(chain, name, more_than=0.3), chain.container_pids()[main]
        chain.signal(pid, "KILL")
        rows = [before]

        def goes_on() -> bool:
            rows.append(only_row(chain.page(), name))
            busy = rows[-1].values[BUSY_SECONDS] - before.values[BUSY_SECONDS]
            return chain.container_pids().get(main, pid) != pid and busy > 0.5

        chain.cluster.until(goes_on, what="the next process to count", log="kubelet")
        counts = [row.values[BUSY_SECONDS] for row in rows]
        assert counts == sorted(counts)
        assert {frozenset(row.labels.items()) for row in rows} == {
            frozenset(before.labels.items())
        }
        status = chain.cluster.get("pod", name, f"--namespace={NAMESPACE}")["status"]
        assert status["containerStatuses"][0]["restartCount"] == 1


@pytest.mark.parametrize("how", ["deleted", "finished"])
def test_the_rows_of_a_pod_that_ends_are_gone_at_once(chain: TenantChain, how: str) -> None:
    """Reports: dcgm-exporter #140, #16 (series of a pod that has ended stay for minutes)."""
    needs = demand(7, 700)
    with running(chain, shared_pod(f"brief-{how}", needs, restart="Never")) as name:
        counted(chain, name, more_than=0.1)
        if how == "deleted":
            delete(chain, name)
        else:
            finish(chain, name)
        chain.cluster.until(
            lambda: not rows_of(chain.page(), name),
            what=f"no rows of {name}",
            seconds=AT_ONCE_SECONDS,
            log="exporter",
        )
        assert not any(name in str(s.labels) for s in chain.page().samples(BUSY_SECONDS))


def finish(chain: TenantChain, pod_name: str) -> None:
    """Let the container of a pod end by itself; the pod stays as one that succeeded."""
    chain.signal(chain.container_pids()[ContainerName(pod_name, "main")], "TERM")

    def succeeded() -> bool:
        status = chain.cluster.get("pod", pod_name, f"--namespace={NAMESPACE}")["status"]
        return bool(status["phase"] == "Succeeded")

    chain.cluster.until(succeeded, what=f"{pod_name} to succeed", log="kubelet")


def test_a_process_of_the_host_is_a_tenant_without_names_until_it_ends(
    chain: TenantChain,
) -> None:
    needs, row = demand(5, 900), Row(chain.devices.shared)
    process = chain.host_process(needs, chain.devices.shared)
    try:

        def seen() -> bool:
            process.require_alive()
            served = chain.page().tenants.get(row)
            return served is not None and served.values.get(MEMORY) == needs.memory_bytes

        chain.cluster.until(seen, what="the host's row", log="exporter", seconds=20)
        # It has values that count for others, and nothing that could be told of it.
        assert chain.page().tenants[row].labels == {}
    finally:
        process.end()
    chain.cluster.until(
        lambda: row not in chain.page().tenants,
        what="no row of the host",
        log="exporter",
        seconds=AT_ONCE_SECONDS,
    )


def test_a_claimed_device_changes_hands(chain: TenantChain) -> None:
    """A device without a claim is still there, and its next holder has the row to itself.

    Reports: dcgm-exporter #569 (GPUs without a claim vanish).
    """
    device, next_name = chain.devices.claimed, "claimed-next"
    delete(chain, "claimed")
    page = chain.cluster.until(
        lambda: unclaimed if not rows_of(unclaimed := chain.page(), "claimed") else None,
        what="no rows of the claim",
        seconds=AT_ONCE_SECONDS,
        log="exporter",
    )
    assert page.of_device("gpu_up")[device] == 1
    chain.cluster.until(
        lambda: (
            f"{dra_driver.UNPREPARED} {NAMESPACE}/claimed-" in chain.claim_driver.log.read_text()
        ),
        what="the claim to be given back",
        log="claim-driver",
    )
    following = claiming_pod(next_name, tenants.GPU_CLAIM, device, demand(33, 1_000))
    chain.cluster.apply([following])
    counted(chain, next_name, more_than=0.5)
    assert [row.pod for row in chain.page().tenants if row.device == device] == [next_name]
