import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from exporter.tenants.cgroups import OUTSIDE, Placement, placement
from tests.unit.tenants.machine import ID, OTHER_ID, OTHER_UID, UID

UNIT_UID = UID.replace("-", "_")
HASH = "8f6a44fc62e8cb075753c843896568ca"
IN_POD = Placement(pod_uid=UID, container_id=ID)
BURSTABLE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNIT_UID}.slice"


def v1(path, *, only=()):
    """Return every hierarchy of cgroup v1 at a path, or ``only`` some, the others at the root."""
    names = ["name=systemd", "pids", "devices", "memory", "cpu,cpuacct", "cpuset", ""]
    return "".join(
        f"{len(names) - n}:{name}:{path if not only or name in only else '/'}\n"
        for n, name in enumerate(names)
    )


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"/kubepods/burstable/pod{UID}/{ID}", id="containerd, cgroupfs"),
        pytest.param(f"/kubepods/pod{UID}/{ID}", id="guaranteed"),
        pytest.param(f"/kubepods/besteffort/pod{UID}/crio-{ID}", id="CRI-O, cgroupfs"),
        pytest.param(f"{BURSTABLE}/cri-containerd-{ID}.scope", id="containerd, systemd"),
        pytest.param(f"{BURSTABLE}/crio-{ID}.scope/container", id="CRI-O, systemd"),
        pytest.param(f"{BURSTABLE}/crio-conmon-{ID}.scope", id="CRI-O's monitor of the container"),
        pytest.param(f"{BURSTABLE}/docker-{ID}.scope", id="cri-dockerd"),
        pytest.param(
            f"/kubepods.slice/kubepods-pod{UNIT_UID}.slice/cri-containerd-{ID}.scope",
            id="guaranteed, systemd",
        ),
        pytest.param(
            f"/system.slice/containerd.service/kubepods-burstable-pod{UNIT_UID}.slice"
            f":cri-containerd:{ID}",
            id="runtime and kubelet disagree about the driver",
        ),
        pytest.param(
            f"/docker/{OTHER_ID}/kubelet.slice/kubelet-kubepods.slice/"
            f"kubelet-kubepods-pod{UNIT_UID}.slice/cri-containerd-{ID}.scope",
            id="kind, seen from outside the node",
        ),
        pytest.param(
            f"/lxc.payload.node/kubepods/besteffort/pod{UID}/{ID}", id="the node is a container"
        ),
        pytest.param(f"/kubepods/pod{UID}/{ID}/system.slice/ssh.service", id="systemd inside"),
        pytest.param(f"{BURSTABLE}/crio-{ID}.scope/docker/{OTHER_ID}", id="docker inside"),
        pytest.param(
            f"/kubepods/pod{UID}/{ID}/kubelet/kubepods/burstable/pod{OTHER_UID}/{OTHER_ID}",
            id="a kubelet inside",
        ),
        pytest.param(f"/kubepods/pod{UID}/{ID} (deleted)", id="the cgroup is already removed"),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v2", "hybrid"])
def test_a_container_of_a_pod_is_found(path, version):
    texts = {"v1": v1(path), "v2": f"0::{path}\n", "hybrid": v1(path) + "0::/\n"}

    assert placement(texts[version]) == IN_POD


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"/../../pod{OTHER_UID}/{OTHER_ID}", id="same class"),
        pytest.param(f"/../../../besteffort/pod{OTHER_UID}/{OTHER_ID}", id="another class"),
        pytest.param(
            f"/../../../kubepods-pod{OTHER_UID.replace('-', '_')}.slice/"
            f"cri-containerd-{OTHER_ID}.scope",
            id="systemd",
        ),
    ],
)
def test_pods_are_found_from_within_a_cgroup_namespace(path):
    assert placement(f"0::{path}") == Placement(pod_uid=OTHER_UID, container_id=OTHER_ID)


@pytest.mark.parametrize("name", [OTHER_ID, f"cri-containerd-{OTHER_ID}.scope"])
@pytest.mark.parametrize("inside", ["", f"/kubepods/pod{UID}/{ID}"])
def test_a_container_beside_ours_in_our_pod_is_known_by_its_id_alone(name, inside):
    assert placement(f"0::/../{name}{inside}") == Placement(container_id=OTHER_ID)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/..",
        "/../../../..",
        "/init.scope",
        "/system.slice/kubelet.service",
        "/../../../../system.slice/nvidia-persistenced.service",
        "/user.slice/user-1000.slice/session-3.scope",
        f"/{ID}",
        f"/docker/{ID}",
        f"/system.slice/docker-{ID}.scope",
        f"/system.slice:docker:{ID}",
        f"/../../../../system.slice/docker-{ID}.scope",
        f"/machine.slice/libpod-{ID}.scope/container",
        f"/machine.slice/machine-libpod_pod_{ID}.slice/libpod-{OTHER_ID}.scope",
        "/system.slice/podman.service",
        f"/actions_job/{ID}",
        "/slurm/uid_1000/job_17/step_0",
    ],
)
def test_everything_else_is_outside_of_pods(path):
    assert placement(v1(path)) == placement(f"0::{path}\n") == OUTSIDE


def test_a_static_pod_is_known_by_the_hash_of_its_manifest():
    """Its uid in the API is another one."""
    found = placement(f"0::/kubepods/burstable/pod{HASH}/{ID}")

    assert found == Placement(pod_uid=HASH, container_id=ID)


@pytest.mark.parametrize("path", [f"/kubepods/pod{UID}", f"{BURSTABLE}/", f"{BURSTABLE}/kata"])
def test_a_process_beside_the_containers_of_a_pod_is_in_the_pod_only(path):
    assert placement(f"0::{path}") == Placement(pod_uid=UID)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="a process that has just gone"),
        pytest.param("garbage\n", id="no cgroups"),
        pytest.param("0::\n", id="no path"),
        pytest.param(f"0::/kubepods/burstable/podwithout-uid/{ID}", id="a pod of another form"),
        pytest.param(v1("/") + "0::/kubepods/burstable", id="among pods, but in none"),
        pytest.param(
            f"2:cpu:/kubepods/pod{UID}/{ID}\n1:pids:/kubepods/pod{OTHER_UID}/{OTHER_ID}\n",
            id="in two pods",
        ),
    ],
)
def test_where_the_text_does_not_tell_nothing_is_said(text):
    assert placement(text) is None


@pytest.mark.parametrize("controller", ["name=systemd", "memory", "cpu,cpuacct"])
def test_one_hierarchy_with_the_container_is_enough(controller):
    text = v1(f"/kubepods/pod{UID}/{ID}", only=[controller]) + "0::/system.slice/k3s.service\n"

    assert placement(text) == IN_POD


def test_the_innermost_of_hierarchies_of_one_pod_counts():
    text = f"2:devices:/kubepods/pod{UID}/{ID}\n1:cpu:/kubepods/pod{UID}\n0::/kubepods\n"

    assert placement(text) == IN_POD


@pytest.mark.parametrize("separator", ["\r", "\x0b", "\x85", "\u2028"])
def test_a_container_cannot_pass_for_another_by_naming_a_group_like_a_line(separator):
    path = f"/kubepods/pod{UID}/{ID}/x{separator}0::/kubepods/pod{OTHER_UID}/{OTHER_ID}"

    assert placement(f"0::{path}\n") == IN_POD


hexadecimal = st.text("0123456789abcdef", min_size=64, max_size=64)
uids = st.one_of(st.uuids().map(str), st.uuids().map(lambda uid: uid.hex))
classes = st.sampled_from(["guaranteed", "burstable", "besteffort"])
names = st.text(st.characters(exclude_characters="/\n", codec="utf-8"), min_size=1, max_size=12)


@st.composite
def containers(draw):
    """The names from the root down to a container, with what it must be recognised as."""
    uid, container, qos = draw(uids), draw(hexadecimal), draw(classes)
    above = draw(st.sampled_from([[], ["system.slice", "k3s.service"], ["docker", "9e" * 32]]))
    if draw(st.booleans()):
        folder = [] if qos == "guaranteed" else [qos]
        path = ["kubepods", *folder, f"pod{uid}", draw(st.sampled_from(["", "crio-"])) + container]
    else:
        parent = "kubepods" if qos == "guaranteed" else f"kubepods-{qos}"
        slices = (
            ["kubepods.slice"] if qos == "guaranteed" else ["kubepods.slice", f"{parent}.slice"]
        )
        scopes = [f"{runtime}-{container}.scope" for runtime in ("cri-containerd", "crio")]
        pod = f"{parent}-pod{uid.replace('-', '_')}.slice"
        path = [*slices, pod, draw(st.sampled_from(scopes))]
    return above + path, Placement(pod_uid=uid, container_id=container)


@given(containers(), st.lists(names))
def test_what_a_container_makes_of_its_own_groups_does_not_matter(container, inner):
    path, expected = container

    assert placement("0::/" + "/".join(path + inner)) == expected


@given(containers(), st.permutations(range(7)), st.sets(st.integers(0, 6), min_size=1))
def test_the_order_of_hierarchies_and_which_of_them_are_used_do_not_matter(container, order, used):
    path, expected = container
    lines = [f"{n}:c{n}:{'/' + '/'.join(path) if n in used else '/'}" for n in order]

    assert placement("\n".join(lines)) == expected


def relative(path, root):
    """Return a path as the kernel shows it in a cgroup namespace whose root is ``root``."""
    common = 0
    while common < min(len(path), len(root)) and path[common] == root[common]:
        common += 1
    return "/" + "/".join([".."] * (len(root) - common) + path[common:])


@given(containers(), containers(), st.lists(st.just("inner"), max_size=2))
def test_every_container_is_the_same_one_from_within_any_other(container, reader, deeper):
    (path, expected), (root, own) = container, reader
    assume(expected.container_id != own.container_id)

    found = placement(f"0::{relative(path, root + deeper)}")

    assert found is not None
    assert found.container_id == expected.container_id
    assert found.pod_uid == ("" if expected.pod_uid == own.pod_uid else expected.pod_uid)


@given(containers(), hexadecimal)
def test_neighbours_in_our_pod_are_the_same_ones_from_within(container, neighbour):
    path, own = container
    assume(neighbour != own.container_id)
    beside = [*path[:-1], path[-1].replace(own.container_id, neighbour)]

    found = placement(f"0::{relative(beside, path)}")

    assert found == Placement(container_id=neighbour)


@given(containers(), st.sampled_from([["init.scope"], ["system.slice", "sshd.service"], []]))
def test_host_services_are_outside_from_within_any_container(reader, service):
    assert placement(f"0::{relative(service, reader[0])}") == OUTSIDE


@given(st.text())
@example("0::/../")
@example("0::/..:cri-containerd:")
def test_any_text_is_taken(text):
    found = placement(text)

    assert found is None or set(found.container_id) <= set("0123456789abcdef")
