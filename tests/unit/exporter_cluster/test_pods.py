"""What a change of a pod makes of the facts about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster import pods as pods_module
from exporter.cluster.pods import PodFeed
from exporter.tenants.protocol import PodFacts, PodName, Versioned
from slicewatch.kube.objects import Metadata, OwnerReference, PodIdentity, PodStatus

NAME = PodName("ml", "p")
LABELS = {"team": "vision", "app.kubernetes.io/name": "detect", "pod-template-hash": "5d9"}


def pod(name="p", *, uid="u-1", phase="Running", labels=LABELS, owner=None):
    owners = (OwnerReference(kind=owner[0], name=owner[1], controller=True),) if owner else ()
    return PodIdentity(
        metadata=Metadata(
            name=name, namespace="ml", uid=uid, labels=labels, owner_references=owners
        ),
        status=PodStatus(phase=phase),
    )


@pytest.fixture
def facts():
    return Versioned()


def test_only_the_labels_that_were_asked_for_are_taken(facts):
    PodFeed(facts, labels=("team", "missing")).changed(None, pod())

    assert facts.current == {NAME: PodFacts(uid="u-1", labels={"team": "vision"})}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (("ReplicaSet", "detect-5d9"), ("Deployment", "detect")),
        (("ReplicaSet", "bare"), ("ReplicaSet", "bare")),
        (("Job", "train"), ("Job", "train")),
        (None, ("Pod", "p")),
    ],
)
def test_the_workload_is_what_scales_and_not_one_revision_of_it(facts, owner, expected):
    PodFeed(facts, workloads=True).changed(None, pod(owner=owner))

    found = facts.current[NAME]
    assert (found.workload_kind, found.workload) == expected
    assert found.labels == {}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_finished(facts, phase):
    feed = PodFeed(facts)
    feed.changed(None, pod())
    assert not facts.current[NAME].finished

    feed.changed(pod(), pod(phase=phase))

    assert facts.current[NAME].finished


def test_a_deleted_pod_is_finished_until_another_has_its_name(facts):
    feed = PodFeed(facts, labels=("team",))
    feed.changed(None, pod())
    feed.changed(pod(), None)
    assert facts.current[NAME] == PodFacts(uid="u-1", labels={"team": "vision"}, finished=True)

    feed.changed(None, pod(uid="u-2"))

    assert facts.current[NAME] == PodFacts(uid="u-2", labels={"team": "vision"})


def test_a_change_of_what_nobody_asked_for_is_no_new_version(facts):
    feed = PodFeed(facts, labels=("team",), workloads=True)
    feed.changed(None, pod(phase="Pending"))
    version = facts.version

    feed.changed(pod(), pod(phase="Running", labels=LABELS | {"other": "x"}))
    assert facts.version == version

    feed.changed(pod(), pod(labels=LABELS | {"team": "speech"}))
    assert facts.version == version + 1


def test_what_was_read_before_a_change_stays_as_it_was(facts):
    feed = PodFeed(facts)
    feed.changed(None, pod())
    before = facts.current

    feed.changed(None, pod("q"))

    assert set(before) == {NAME}


def test_of_many_deleted_pods_the_oldest_are_forgotten(facts, monkeypatch):
    monkeypatch.setattr(pods_module, "KEPT_DELETED", 2)
    feed = PodFeed(facts)
    for name in ("stays", "a", "b", "c"):
        feed.changed(None, pod(name))
    for name in ("a", "b", "c"):
        feed.changed(pod(name), None)

    assert {n.name: f.finished for n, f in facts.current.items()} == {
        "stays": False, "b": True, "c": True,
    }  # fmt: skip


changes = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["Running", "Failed", None])))


@given(changes)
def test_the_last_word_on_each_pod_counts(told):
    facts, held = Versioned(), {}
    feed = PodFeed(facts)
    for name, phase in told:
        old, new = held.pop(name, None), None if phase is None else pod(name, phase=phase)
        if new is not None:
            held[name] = new
        if old != new:
            feed.changed(old, new)

    running = {n.name for n, f in facts.current.items() if not f.finished}
    assert running == {name for name, one in held.items() if not one.finished}
