import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from exporter.tenants.device_ids import PoolDevice, Published
from exporter.tenants.protocol import Allocation, PodFacts, PodName, Versioned
from exporter.tenants.tenants import Holders, TenantMap, Unresolved, tenants_of
from slicewatch.wire.layout import Device, Tenant

FIRST = Device(uuid="GPU-b", gpu=0, minor=0, model="H100")
SECOND = Device(uuid="GPU-a", gpu=1, minor=1, model="H100")
SLICE = Device(
    uuid="MIG-1", gpu=1, parent="GPU-a", model="H100", gpu_instance=3, compute_instance=0,
    profile="1g.10gb", placement_start=4, placement_size=1,
)  # fmt: skip
NODE = (FIRST, SECOND, SLICE)


def held(device_id, *, pod="p", container="c", resource="nvidia.com/gpu", **more):
    return Allocation(
        namespace="ml", pod=pod, container=container, resource=resource, device_id=device_id,
        **more,
    )  # fmt: skip


def claimed(device_id, claim="claim", **more):
    about = {"resource": "gpu.nvidia.com", "pool": "node-1", "claim_namespace": "ml"} | more
    return held(device_id, claim=claim, **about)


def tenant(device, *, pod="p", container="c", resource="nvidia.com/gpu", **more):
    return Tenant(
        device=device.uuid, namespace="ml", pod=pod, container=container, resource=resource,
        **more,
    )  # fmt: skip


def test_the_replicas_of_a_time_sliced_gpu_are_tenants_of_it():
    """dcgm-exporter #151, #201 and #222: a resource of another name, ids with a suffix."""
    shared = "nvidia.com/gpu.shared"
    pods = [held(f"GPU-b::{n}", pod=f"p{n}", resource=shared) for n in range(2)]

    found = tenants_of(NODE, pods).tenants

    assert found == tuple(
        tenant(FIRST, pod=f"p{n}", resource=shared, replica=str(n)) for n in range(2)
    )


def test_all_pods_that_share_a_gpu_are_its_tenants():
    """dcgm-exporter #307: four pods on one GPU of GKE, of which the last was labelled."""
    pods = [held(f"nvidia0/vgpu{n}", pod=f"p{n}") for n in range(4)]

    found = tenants_of(NODE, pods).tenants

    assert found == tuple(tenant(FIRST, pod=f"p{n}", replica=str(n)) for n in range(4))


def test_two_containers_and_two_gpus_of_a_pod_stay_apart():
    """HAMi #863: several GPUs for several containers of a pod."""
    found = tenants_of(NODE, [held("GPU-a", container="y"), held("GPU-b", container="x")]).tenants

    assert found == (tenant(FIRST, container="x"), tenant(SECOND, container="y"))


def test_a_mig_device_is_held_and_its_gpu_is_not():
    """dcgm-exporter #577: labels on whole GPUs only."""
    resource = "nvidia.com/mig-1g.10gb"

    found = tenants_of(NODE, [held("MIG-1", resource=resource)]).tenants

    assert found == (tenant(SLICE, resource=resource),)


@pytest.mark.parametrize("form", ["MIG-{n}", "MIG-GPU-a/{gi}/0", "nvidia1/gi{gi}"])
def test_two_gpu_instances_of_a_gpu_have_their_own_tenants(form):
    """dcgm-exporter #272: the kubelet and the driver name an instance in different ways."""
    parts = [msgspec.structs.replace(SLICE, uuid=f"MIG-{n}", gpu_instance=gi, placement_start=n)
             for n, gi in ((1, 3), (2, 7))]  # fmt: skip
    ids = [form.format(n=n, gi=gi) for n, gi in ((1, 3), (2, 7))]

    pods = [held(device_id, pod=pod) for device_id, pod in zip(ids, "pq", strict=True)]

    found = tenants_of((FIRST, SECOND, *parts), pods).tenants

    assert found == (tenant(parts[0], pod="p"), tenant(parts[1], pod="q"))


def test_devices_that_nobody_holds_are_no_fault():
    """dcgm-exporter #549, #611 and #569: the devices themselves are never a matter of tenants."""
    assert tenants_of(NODE, []) == Holders(known=True)
    assert [t.device for t in tenants_of(NODE, [claimed("gpu-0")]).tenants] == [FIRST.uuid]


def test_a_dynamic_mig_device_is_found_through_its_claim():
    """dcgm-exporter #714, without the ResourceSlices: by parent, profile and placement."""
    found = tenants_of(NODE, [claimed("gpu-1-mig-1g10gb-19-4", share="s-1")]).tenants

    assert found == (
        tenant(
            SLICE, resource="gpu.nvidia.com", replica="s-1", claim="claim", claim_namespace="ml"
        ),
    )


def test_a_claimed_device_is_what_its_pool_published():
    published = {PoolDevice("node-1", "gpu-0"): Published(uuid=SECOND.uuid)}

    found = tenants_of(NODE, [claimed("gpu-0")], published=published).tenants

    assert [t.device for t in found] == [SECOND.uuid]


def test_a_container_may_hold_a_device_through_several_claims():
    shares = [claimed("gpu-0", claim="b", share="2"), claimed("gpu-0", claim="a", share="1")]

    (found,) = tenants_of(NODE, shares).tenants

    assert (found.claim, found.claim_namespace, found.replica) == ("a,b", "ml", "1,2")


POD = PodName("ml", "p")
FACTS = PodFacts(uid="u-1", labels={"team": "x"}, workload_kind="Deployment", workload="web")


@pytest.mark.parametrize("allocation", [held("GPU-b"), claimed("gpu-0")])
def test_facts_about_a_pod_are_those_of_its_tenants_however_it_holds_the_device(allocation):
    """dcgm-exporter #718: no pod uid for devices held through a claim."""
    (found,) = tenants_of(NODE, [allocation], pods={POD: FACTS}).tenants

    about = (found.uid, found.labels, found.workload_kind, found.workload)
    assert about == ("u-1", {"team": "x"}, "Deployment", "web")


def test_a_finished_pod_holds_nothing_and_another_of_its_name_elsewhere_does():
    """dcgm-exporter #140 and #16, volcano-vgpu-device-plugin #130."""
    over = msgspec.structs.replace(FACTS, finished=True)
    elsewhere = Allocation(
        namespace="web", pod="p", container="c", resource="nvidia.com/gpu", device_id="GPU-b"
    )

    found = tenants_of(NODE, [held("GPU-b"), held("GPU-x"), elsewhere], pods={POD: over})

    assert [(t.namespace, t.pod) for t in found.tenants] == [("web", "p")]
    assert found.unresolved == ()


def test_without_word_from_the_api_server_a_listed_pod_holds_what_is_listed():
    others = {PodName("ml", "other"): FACTS}

    assert tenants_of(NODE, [held("GPU-b")], pods=others).tenants == (tenant(FIRST),)


def test_a_container_with_several_replicas_of_a_gpu_is_one_tenant():
    replicas = [held(f"GPU-b::{n}") for n in (10, 2, 2)]

    assert tenants_of(NODE, replicas).tenants == (tenant(FIRST, replica="2,10"),)


def test_tenants_come_in_the_order_of_the_devices():
    found = tenants_of(NODE, [held("GPU-a"), held("MIG-1"), held("GPU-b")]).tenants

    assert [t.device for t in found] == ["GPU-b", "GPU-a", "MIG-1"]


def test_an_unknown_id_is_reported_and_costs_only_itself():
    found = tenants_of(NODE, [held("GPU-gone"), held("GPU-a"), held("GPU-gone", pod="q")])

    assert found.tenants == (tenant(SECOND),)
    assert found.unresolved == (Unresolved(resource="nvidia.com/gpu", device_id="GPU-gone"),)


ids = st.sampled_from(
    ["GPU-a", "GPU-b", "GPU-b::0", "GPU-b::1", "MIG-1", "nvidia0", "nvidia1/gi3", "1", "GPU-x"]
)
held_by_some = st.builds(held, ids, pod=st.sampled_from("pqr"), container=st.sampled_from("cd"))


@given(st.lists(held_by_some), st.data())
def test_the_order_of_the_kubelet_does_not_matter(allocations, data):
    shuffled = data.draw(st.permutations(allocations))

    assert tenants_of(NODE, shuffled) == tenants_of(NODE, allocations)


@given(st.lists(held_by_some))
def test_a_container_is_one_tenant_of_a_device(allocations):
    found = tenants_of(NODE, allocations).tenants
    keys = [(t.device, t.namespace, t.pod, t.container) for t in found]

    assert len(set(keys)) == len(keys)
    resolvable = {(a.pod, a.container) for a in allocations if a.device_id != "GPU-x"}
    assert {(t.pod, t.container) for t in found} == resolvable


def test_before_the_first_answer_nothing_is_known():
    tenants = TenantMap()

    assert tenants.resolve(NODE) == ()
    assert not tenants.known
    assert tenants.age_seconds(100.0) is None
    assert tenants.version == 0


def test_an_answer_that_nobody_holds_anything_is_known():
    tenants = TenantMap()
    tenants.take((), now=7.0)

    assert tenants.resolve(NODE) == ()
    assert tenants.known
    assert tenants.age_seconds(7.0) == 0.0
    assert tenants.version == 1


def test_the_age_grows_until_the_next_answer():
    tenants = TenantMap()
    tenants.take((), now=10.0)
    assert tenants.age_seconds(25.5) == pytest.approx(15.5)

    tenants.take((), now=26.0)
    assert tenants.age_seconds(26.0) == 0.0


def test_the_holders_say_how_old_and_how_whole_the_answer_is():
    tenants = TenantMap()
    assert tenants.holders(NODE, 9.0) == Holders()
    tenants.take((held("GPU-a"), held("GPU-gone")), now=10.0)

    found = tenants.holders(NODE, 12.5)

    assert found == Holders(
        tenants=(tenant(SECOND),),
        unresolved=(Unresolved(resource="nvidia.com/gpu", device_id="GPU-gone"),),
        known=True,
        age_seconds=2.5,
    )


def test_only_another_answer_is_another_version():
    tenants = TenantMap()
    a, b = held("GPU-a"), held("GPU-b")

    tenants.take((a, b), now=1.0)
    tenants.take((b, a, a), now=2.0)
    assert tenants.version == 1

    tenants.take((a,), now=3.0)
    assert tenants.version == 2


def test_network_cards_that_come_and_go_are_no_change():
    tenants = TenantMap()
    tenants.take((held("GPU-a"),), now=1.0)

    tenants.take((held("GPU-a"), held("0000:3b:00.0", resource="intel.com/sriov")), now=2.0)

    assert tenants.version == 1
    assert tenants.resolve(NODE) == (tenant(SECOND),)
    assert tenants.unresolved == ()


def test_the_same_answer_is_put_onto_new_devices_at_once():
    tenants = TenantMap()
    tenants.take((held("MIG-1"),), now=1.0)
    assert tenants.resolve((FIRST, SECOND)) == ()
    tenants.devices_changed.clear()

    assert tenants.resolve(NODE) == (tenant(SLICE),)
    assert tenants.devices_changed.is_set()


def test_unchanged_devices_and_answers_resolve_to_the_very_same_tenants():
    tenants = TenantMap()
    tenants.take((held("GPU-a"),), now=1.0)
    before = tenants.resolve(NODE)
    tenants.devices_changed.clear()
    tenants.take((held("GPU-a"),), now=2.0)

    assert tenants.resolve(tuple(NODE)) is before
    assert not tenants.devices_changed.is_set()


def test_facts_that_arrive_later_are_put_onto_the_same_answer():
    tenants = TenantMap()
    tenants.take((held("GPU-b"),), now=1.0)
    assert tenants.resolve(NODE) == (tenant(FIRST),)

    tenants.pods.replace({POD: FACTS})

    (found,) = tenants.resolve(NODE)
    assert found.workload == "web"


def test_facts_about_pods_without_devices_leave_the_very_same_tenants():
    tenants = TenantMap()
    tenants.take((held("GPU-b"),), now=1.0)
    tenants.pods.replace({POD: FACTS})
    before = tenants.resolve(NODE)

    tenants.pods.replace({POD: FACTS, PodName("kube-system", "dns"): FACTS})

    assert tenants.resolve(NODE) is before


def test_a_slice_that_is_published_later_resolves_what_was_unknown():
    tenants = TenantMap()
    tenants.take((claimed("gpu-9"),), now=1.0)
    assert tenants.resolve(NODE) == ()

    tenants.published.replace({PoolDevice("node-1", "gpu-9"): Published(uuid="GPU-a")})

    assert [t.device for t in tenants.resolve(NODE)] == ["GPU-a"]
    assert tenants.unresolved == ()


def test_only_other_content_is_another_version_of_a_mapping():
    content = {"a": 1}
    versioned = Versioned()
    versioned.replace(content)
    content["b"] = 2
    assert versioned.current == {"a": 1}

    versioned.replace({"a": 1})
    assert versioned.version == 1

    versioned.replace({})
    assert (versioned.version, versioned.current) == (2, {})


def test_a_container_that_is_gone_from_the_answer_is_no_tenant_any_more():
    tenants = TenantMap()
    tenants.take((held("GPU-a"), held("GPU-b", pod="q")), now=1.0)
    assert len(tenants.resolve(NODE)) == 2

    tenants.take((held("GPU-b", pod="q"),), now=2.0)

    assert tenants.resolve(NODE) == (tenant(FIRST, pod="q"),)


def test_an_id_that_stays_unknown_is_said_once():
    tenants = TenantMap()
    with capture_logs() as said:
        for now in range(3):
            tenants.take((held("GPU-gone"), held("GPU-a", pod=f"p{now}")), now=float(now))
            tenants.resolve(NODE)

    (line,) = said
    assert (line["count"], line["examples"]) == (1, ["nvidia.com/gpu GPU-gone"])
    assert len(tenants.unresolved) == 1


def test_without_a_driver_no_id_is_called_unknown():
    tenants = TenantMap()
    tenants.take((held("GPU-a"),), now=1.0)

    with capture_logs() as said:
        assert tenants.resolve(()) == ()

    assert said == []


def test_an_id_that_was_unknown_before_there_was_a_driver_is_said_with_it():
    tenants = TenantMap()
    tenants.take((held("GPU-gone"),), now=1.0)
    tenants.resolve(())

    with capture_logs() as said:
        tenants.resolve(NODE)

    assert len(said) == 1


def test_any_number_of_unknown_ids_is_one_line():
    tenants = TenantMap()
    tenants.take([held(f"GPU-{n}") for n in range(1000)], 0.0)
    with capture_logs() as said:
        tenants.resolve(NODE)
    (line,) = said
    assert (line["count"], len(line["examples"])) == (1000, 5)
