import os
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from exporter.tenants.containers import SHORTEST_PAUSE_SECONDS, Containers
from exporter.tenants.owners import Owner
from tests.unit.tenants.machine import ID, OTHER_ID, SIDECAR, TRAINER, Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def containers(machine):
    return Containers(machine.links, lambda: machine.now)


def look_again(machine):
    machine.now += SHORTEST_PAUSE_SECONDS


def test_a_link_names_its_container(machine, containers):
    machine.link(TRAINER)
    machine.link(SIDECAR, OTHER_ID)

    assert containers.owner(ID) == TRAINER
    assert containers.owner(OTHER_ID) == SIDECAR
    assert containers.owner("0" * 64) is None


def test_every_start_of_a_container_belongs_to_the_same_owner(machine, containers):
    ids = [f"{n:064x}" for n in range(3)]
    for start in ids:
        machine.link(TRAINER, start)

    assert {containers.owner(start) for start in ids} == {TRAINER}


dns = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,40}[a-z0-9])?", fullmatch=True)
subdomains = st.lists(dns, min_size=1, max_size=2).map(".".join)


@given(
    st.builds(Owner, namespace=dns, pod=subdomains, container=dns, uid=st.uuids().map(str)),
    st.text("0123456789abcdef", min_size=64, max_size=64),
)
def test_any_names_that_kubernetes_allows_are_told_apart(tmp_path_factory, owner, container):
    machine = Machine(tmp_path_factory.mktemp("machine"))
    machine.link(owner, container)

    assert Containers(machine.links, lambda: 0.0).owner(container) == owner


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".log",
        f"{ID}.log",
        f"train-0_ml_main-{ID}",
        f"train-0_ml_main-{ID}.log.gz",
        f"train-0_ml_main-{ID[1:]}.log",
        f"train-0_ml_main-{ID.upper()}.log",
        f"train-0_ml-{ID}.log",
        f"train-0_ml_{ID}.log",
        f"a_train-0_ml_main-{ID}.log",
        f"_ml_main-{ID}.log",
        f"train-0_ml_-{ID}.log",
        # What the kubelet makes of names that are too long together.
        f"{'p' * 63}_{'n' * 63}_{'c' * 62}-{ID}"[:251] + ".log",
    ],
)
def test_files_of_any_other_form_are_ignored(machine, containers, name):
    machine.link(SIDECAR, OTHER_ID)
    (machine.links / f"{name}").touch() if name else (machine.links / "folder").mkdir()

    assert containers.owner(ID) is None
    assert containers.owner(OTHER_ID) == SIDECAR


@pytest.mark.parametrize(
    "target",
    [
        None,
        "/var/lib/docker/containers/x/x-json.log",
        f"/var/log/pods/{TRAINER.uid}/main/0.log",
        f"/var/log/pods/ml_another-pod_{TRAINER.uid}/main/0.log",
        "0.log",
    ],
)
def test_a_target_that_the_kubelet_would_not_make_leaves_only_the_uid_open(
    machine, containers, target
):
    link = machine.links / f"train-0_ml_main-{ID}.log"
    link.symlink_to(target) if target else link.touch()

    assert containers.owner(ID) == Owner(namespace="ml", pod="train-0", container="main")


def test_a_link_that_comes_later_is_found_after_the_pause(machine, containers):
    assert containers.owner(ID) is None
    machine.link(TRAINER)

    assert containers.owner(ID) is None
    look_again(machine)
    assert containers.owner(ID) == TRAINER


def freeze(folder):
    """Return a function that gives a folder its present time of change again."""
    stat = folder.stat()
    return lambda: os.utime(folder, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_link_that_comes_with_the_listing_is_not_missed(machine, containers):
    """Time stamps of folders are as coarse as a tick of the kernel's clock."""
    same_time = freeze(machine.links)
    assert containers.owner(ID) is None
    machine.link(TRAINER)
    same_time()

    look_again(machine)
    assert containers.owner(ID) == TRAINER


def test_a_folder_that_has_not_changed_is_not_listed_again(machine, containers):
    """dcgm-exporter #599: what is not found must not cost more than what is."""
    same_time = freeze(machine.links)
    for _ in range(2):
        assert containers.owner(ID) is None
        look_again(machine)
    machine.link(TRAINER)
    changed = machine.links.stat()
    same_time()

    assert containers.owner(ID) is None
    look_again(machine)
    os.utime(machine.links, ns=(changed.st_atime_ns, changed.st_mtime_ns + 1))
    assert containers.owner(ID) == TRAINER


def test_a_pod_of_a_name_is_known_unless_two_have_had_it(machine, containers):
    machine.link(TRAINER)
    assert containers.pod_uid(TRAINER.namespace, TRAINER.pod) == TRAINER.uid

    machine.link(replace(TRAINER, uid="another"), OTHER_ID)
    look_again(machine)
    assert containers.pod_uid(TRAINER.namespace, TRAINER.pod) == ""


def test_a_known_container_is_not_looked_for(machine, containers):
    machine.link(TRAINER)
    containers.owner(ID)
    shutil.rmtree(machine.links)
    look_again(machine)

    with capture_logs() as lines:
        assert containers.owner(ID) == TRAINER
    assert not lines


def test_containers_without_a_link_are_forgotten(machine, containers):
    old = machine.link(TRAINER)
    assert containers.owner(ID) == TRAINER
    old.unlink()
    machine.link(SIDECAR, OTHER_ID)
    look_again(machine)

    assert containers.owner(OTHER_ID) == SIDECAR
    assert containers.owner(ID) is None


def test_a_missing_folder_is_reported_once_and_its_return_too(machine, containers):
    machine.links.rmdir()

    with capture_logs() as lines:
        for _ in range(3):
            assert containers.owner(ID) is None
            look_again(machine)
        machine.links.mkdir()
        machine.link(TRAINER)
        assert containers.owner(ID) == TRAINER

    assert [line["log_level"] for line in lines] == ["warning", "info"]
    assert lines[0]["folder"] == str(machine.links)
    assert "mount" in lines[0]["event"]
