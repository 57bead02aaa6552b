"""What every ``PodResources`` must do.

The checks are functions of a source, so that whoever has a real kubelet can call them with it:
``lists_exactly``, ``survives_a_restart``, ``fails_with``. Here they run on the shipped fake,
through the real client and a real socket.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import pytest_asyncio
import uvloop

from exporter.tenants import kubelet as kubelet_module
from exporter.tenants.fake import FakeKubelet
from exporter.tenants.kubelet import Kubelet
from exporter.tenants.messages import ContainerName, encode
from exporter.tenants.protocol import (
    Allocation,
    DeadlineError,
    Offer,
    PodResourcesError,
    RefusedError,
    UnreachableError,
)
from exporter.tenants.tenants import TenantMap
from slicewatch.wire.layout import Device

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"


async def lists_exactly(source, expected):
    """The source lists exactly these allocations, each of them once."""
    told = await source.list()

    assert sorted(told) == sorted(expected)


async def answers_within(source, seconds):
    """The source answers in time; until then it raises nothing but PodResourcesError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await source.list()
        except PodResourcesError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.02)


async def survives_a_restart(source, stop, start, expected):
    """Questions fail at once while the kubelet is stopped; then the same source works again."""
    await lists_exactly(source, expected)
    await stop()
    for _ in range(3):
        await fails_with(source, UnreachableError, within_seconds=3)
    await start()
    assert sorted(await answers_within(source, 10)) == sorted(expected)


async def fails_with(source, error, *, within_seconds, match=None):
    """The source raises ``error`` in time."""
    async with asyncio.timeout(within_seconds):
        with pytest.raises(error, match=match):
            await source.list()


def connections(socket):
    """Return how many connections a server on this socket has, as the kernel lists them."""
    rows = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    state, connected = 5, "03"
    return sum(row.split()[state] == connected for row in rows if row.endswith(str(socket)))


def held(device_id, *, pod="p", container="c", resource=GPU, **more):
    return Allocation(
        namespace="ml", pod=pod, container=container, resource=resource, device_id=device_id,
        **more,
    )  # fmt: skip


def claimed(device_id, claim, **more):
    return held(
        device_id, resource="gpu.nvidia.com", pool="node-1", claim=claim, claim_namespace="ml",
        **more,
    )  # fmt: skip


@pytest.fixture
def socket(tmp_path):
    return tmp_path / "kubelet.sock"


@pytest_asyncio.fixture
async def kubelet(socket):
    async with FakeKubelet(socket) as running:
        yield running


@pytest_asyncio.fixture
async def source(socket):
    async with Kubelet(socket) as client:
        yield client


@pytest.mark.parametrize(
    "allocations",
    [
        pytest.param([], id="nothing"),
        pytest.param([held("GPU-a")], id="a GPU"),
        pytest.param(
            [held("GPU-a", container="x"), held("GPU-b", container="y"), held("GPU-c", pod="q")],
            id="several containers",
        ),
        pytest.param([held(f"GPU-{n}") for n in range(8)], id="several GPUs in one container"),
        pytest.param([held("MIG-1", resource=MIG), held("MIG-GPU-a/3/0", resource=MIG)], id="MIG"),
        pytest.param([held(f"GPU-a::{n}", pod=f"p{n}") for n in range(4)], id="replicas"),
        pytest.param([held("nvidia0/vgpu1"), held("nvidia1/gi3/vgpu0", pod="q")], id="GKE"),
        pytest.param([held("0000:3b:00.0", resource="intel.com/sriov")], id="another vendor"),
        pytest.param(
            [claimed("gpu-0", "one"), claimed("gpu-1", "one", share="7f"),
             claimed("gpu-0", "two", container="x"), held("GPU-a")], id="claims",
        ),
        pytest.param([held("ÄÖ €", pod="ü"), held("", pod="empty")], id="any text"),
    ],
)  # fmt: skip
async def test_everything_that_is_held_is_listed(kubelet, source, allocations):
    kubelet.give(allocations)

    await lists_exactly(source, allocations)


async def test_everything_that_plugins_offer_is_listed_given_away_or_not(kubelet, source):
    offered = [Offer(GPU, "GPU-a::0"), Offer(GPU, "GPU-a::1"), Offer("intel.com/sriov", "0000:3b")]
    kubelet.offer(offered)
    kubelet.give([held("GPU-a::1")])

    assert sorted(await source.offers()) == sorted(offered)


async def test_a_kubelet_that_does_not_know_the_question_refuses_it(kubelet, source):
    kubelet.refusal = "UNIMPLEMENTED"
    with pytest.raises(RefusedError, match="does not serve PodResources v1"):
        await source.offers()


async def test_pods_without_devices_are_no_allocations(kubelet, source):
    idle = [ContainerName("ml", "p", "sidecar"), ContainerName("kube-system", "dns", "dns")]
    kubelet.give([held("GPU-a")], idle=idle)

    await lists_exactly(source, [held("GPU-a")])


async def test_a_new_answer_replaces_the_one_before(kubelet, source):
    kubelet.give([held("GPU-a"), held("GPU-b", pod="q")])
    await lists_exactly(source, [held("GPU-a"), held("GPU-b", pod="q")])

    kubelet.give([held("GPU-b", pod="q")])

    await lists_exactly(source, [held("GPU-b", pod="q")])


async def test_an_answer_larger_than_the_limit_of_grpc_arrives(kubelet, source):
    """dcgm-exporter #509, #408, #378: on nodes with many pods the answer was refused as too large."""
    crowd = [held(f"GPU-{n:064d}::{n % 10}", pod=f"p-{n // 8}") for n in range(70_000)]
    kubelet.give(crowd)
    assert len(encode(crowd)) > 5 * 2**20

    await lists_exactly(source, crowd)


async def test_an_answer_beyond_our_own_limit_is_refused(kubelet, source, monkeypatch):
    monkeypatch.setattr(kubelet_module, "MAX_ANSWER_BYTES", 1000)
    kubelet.give([held(f"GPU-{n:064d}") for n in range(100)])

    await fails_with(source, RefusedError, within_seconds=5, match="RESOURCE_EXHAUSTED")


async def test_a_kubelet_that_restarts_is_found_again(kubelet, source):
    kubelet.give([held("GPU-a")])

    await survives_a_restart(source, kubelet.stop, kubelet.start, [held("GPU-a")])


async def test_a_kubelet_that_returns_is_found_sooner_than_grpc_alone_would(kubelet, source):
    grpc_waits_at_least_seconds = 0.8
    took = []
    for _ in range(3):
        await source.list()
        await kubelet.stop()
        await fails_with(source, UnreachableError, within_seconds=3)
        await kubelet.start()
        started = time.monotonic()
        await answers_within(source, 10)
        took.append(time.monotonic() - started)

    assert min(took) < grpc_waits_at_least_seconds / 2


async def test_a_kubelet_that_comes_later_is_found(socket, source):
    await fails_with(source, UnreachableError, within_seconds=3, match="is the folder mounted")

    async with FakeKubelet(socket) as kubelet:
        kubelet.give([held("GPU-a")])
        assert list(await answers_within(source, 10)) == [held("GPU-a")]


async def test_a_socket_that_a_killed_kubelet_left_behind_is_unreachable(socket, source):
    server = await asyncio.start_unix_server(lambda _reader, writer: writer.close(), socket)
    server.close()
    await server.wait_closed()
    assert socket.exists()

    await fails_with(source, UnreachableError, within_seconds=3)

    async with FakeKubelet(socket):
        assert await answers_within(source, 10) == ()


async def test_a_kubelet_that_hangs_costs_the_deadline_and_no_more(kubelet, socket):
    source = Kubelet(socket, deadline_seconds=0.2)
    kubelet.hangs = True
    await fails_with(source, DeadlineError, within_seconds=3, match=r"within 0\.2 s")

    kubelet.hangs = False
    assert await answers_within(source, 10) == ()
    await source.close()


async def test_a_socket_on_which_nobody_speaks_costs_the_deadline(socket):
    released = asyncio.Event()

    async def say_nothing(_reader, writer):
        await released.wait()
        writer.close()

    server = await asyncio.start_unix_server(say_nothing, socket)
    source = Kubelet(socket, deadline_seconds=0.2)

    await fails_with(source, DeadlineError, within_seconds=3)

    await source.close()
    released.set()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    ("refusal", "match"),
    [
        ("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED: told to refuse"),
        ("INTERNAL", "INTERNAL"),
        ("UNIMPLEMENTED", "does not serve PodResources v1"),
    ],
)
async def test_a_refusal_is_told_and_gets_over(kubelet, source, refusal, match):
    kubelet.refusal = refusal
    await fails_with(source, RefusedError, within_seconds=3, match=match)

    kubelet.refusal = None
    await lists_exactly(source, [])


async def test_an_answer_in_another_language_is_refused(kubelet, source):
    kubelet.garbage = b"\xff\xff\xff"

    await fails_with(source, RefusedError, within_seconds=3, match="does not speak PodResources")


async def test_questions_at_the_same_time_are_all_answered(kubelet, source):
    kubelet.give([held("GPU-a")])

    answers = await asyncio.gather(*(source.list() for _ in range(20)))

    assert answers == [(held("GPU-a"),)] * 20
    assert kubelet.asked == 20


async def test_a_closed_source_opens_again_when_it_is_asked(kubelet, source):
    kubelet.give([held("GPU-a")])
    await lists_exactly(source, [held("GPU-a")])

    await source.close()
    await source.close()

    await lists_exactly(source, [held("GPU-a")])


async def test_leaving_the_context_closes_the_connection(kubelet, socket):
    async with Kubelet(socket) as source:
        await lists_exactly(source, [])
        assert connections(socket) == 1

    for _ in range(500):
        if connections(socket) == 0:
            return
        await asyncio.sleep(0.02)
    pytest.fail("the connection stays open")


async def test_what_is_listed_becomes_the_tenants_of_the_devices(kubelet, source):
    kubelet.give(
        [
            held("GPU-a::0", pod="one"),
            held("nvidia0/vgpu1", pod="two"),
            held("MIG-1", pod="three", resource=MIG),
            held("GPU-unknown", pod="four"),
            claimed("gpu-1", "a-claim", pod="five"),
        ],
        idle=[ContainerName("ml", "one", "sidecar")],
    )
    whole = Device(uuid="GPU-a", gpu=0, minor=0, model="H100")
    cut = Device(uuid="GPU-b", gpu=1, minor=1, model="H100", mig_enabled=True)
    part = Device(uuid="MIG-1", gpu=1, parent="GPU-b", model="H100", gpu_instance=3)
    tenants = TenantMap()
    tenants.take(await source.list(), now=0.0)

    found = [(t.device, t.pod, t.replica, t.claim) for t in tenants.resolve((whole, cut, part))]

    assert found == [
        ("GPU-a", "one", "0", ""), ("GPU-a", "two", "1", ""), ("GPU-b", "five", "", "a-claim"),
        ("MIG-1", "three", "", ""),
    ]  # fmt: skip
    assert [u.device_id for u in tenants.unresolved] == ["GPU-unknown"]


def test_it_works_on_the_event_loop_of_the_servers(socket):
    async def ask():
        async with FakeKubelet(socket) as kubelet:
            kubelet.give([held("GPU-a")])
            source = Kubelet(socket)
            await survives_a_restart(source, kubelet.stop, kubelet.start, [held("GPU-a")])
            await source.close()

    uvloop.run(ask())


async def test_a_folder_of_any_name_can_hold_the_socket(tmp_path):
    folder = tmp_path / "a b%20#c?"
    folder.mkdir()
    source = Kubelet(folder / "kubelet.sock")
    async with FakeKubelet(folder / "kubelet.sock"):
        assert [file.name for file in folder.iterdir()] == ["kubelet.sock"]
        await lists_exactly(source, [])
    await source.close()


async def test_a_fake_that_runs_is_not_started_twice(kubelet):
    with pytest.raises(RuntimeError, match="is already running"):
        await kubelet.start()


def test_a_path_that_no_socket_can_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match="longer than the 107 bytes"):
        Kubelet(tmp_path / ("x" * 108))


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_deadline_that_is_no_time_is_refused(socket, seconds):
    with pytest.raises(ValueError, match="must be above 0 seconds"):
        Kubelet(socket, deadline_seconds=seconds)


def test_an_exporter_that_asks_no_kubelet_does_not_load_grpc(pytestconfig):
    program = (
        "import sys; from pathlib import Path\n"
        "import exporter.tenants.polling\n"
        "from exporter.tenants.kubelet import Kubelet; Kubelet(Path('k.sock'))\n"
        "print([m for m in ('grpc', 'google.protobuf') if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(pytestconfig.rootpath)}

    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "[]"
