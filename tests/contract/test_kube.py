"""One suite on every ``Kube``: the fake, the fake behind HTTP, and a real kube-apiserver."""

import asyncio
import base64
import datetime
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from health.actions.events import Events, of_node, of_pod
from slicewatch.kube import errors
from slicewatch.kube.cache import Cache
from slicewatch.kube.client import ApiServer
from slicewatch.kube.configuration import connect
from slicewatch.kube.daemon_sets import DAEMON_SET
from slicewatch.kube.events import EVENT
from slicewatch.kube.fake import FakeKube
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.objects import (
    API_SERVICE,
    CONFIG_MAP,
    SECRET,
    ConfigMap,
    Selection,
    ServiceReference,
)
from slicewatch.kube.protocol import Change, Event, Kube
from slicewatch.service import certificates
from slicewatch.service.backoff import Backoff
from slicewatch.service.server import Address, serving
from slicewatch.wire.evidence import Holder
from testbed import binaries, kube_server
from testbed.api_server import ApiServerProcesses, free_port, kubeconfig
from testbed.cluster.pki import Certificate
from testbed.require import skip_or_fail

SECONDS = 30.0
pytestmark = pytest.mark.timeout(180)


@dataclass
class Place:
    """An API server with a namespace of the test's own, and a hand of somebody else in it."""

    kube: Kube
    namespace: str
    fake: FakeKube | None = None

    async def put(self, name: str, **data: str) -> ConfigMap:
        return await self.kube.create(CONFIG_MAP, body(name, data), self.namespace)

    async def remove(self, name: str) -> None:
        if isinstance(self.kube, FakeKube):
            self.kube.delete(CONFIG_MAP, name, self.namespace)
        else:
            assert isinstance(self.kube, ApiServer)
            await self.kube._exchange("DELETE", CONFIG_MAP.path(self.namespace, name))

    def all(self, **labels: str) -> Selection:
        return Selection(namespace=self.namespace, labels=labels)


def body(name: str, data: dict[str, str], **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {"app": "x"}}, "data": data}


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerProcesses]:
    try:
        for name in ("etcd", "kube-apiserver"):
            binaries.binary(name)
    except binaries.Unavailable as error:
        skip_or_fail(str(error))
    with ApiServerProcesses(tmp_path_factory.mktemp("api-server")) as plane:
        yield plane


@pytest.fixture(params=["fake", "http", "real"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    match request.param:
        case "fake":
            fake = FakeKube()
            yield Place(fake, "tests", fake)
        case "http":
            fake = FakeKube()
            async with serving(kube_server.app(fake), Address("127.0.0.1", 0)) as address:
                server = ApiServer(await connect(anonymous(tmp_path, f"http://{address}")))
                yield Place(server, "tests", fake)
                await server.close()
        case _:
            plane: ApiServerProcesses = request.getfixturevalue("api_server")
            server = await as_user(plane, plane.admin)
            name = f"t-{uuid.uuid4().hex[:8]}"
            await server._exchange("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
            yield Place(server, name)
            await server.close()


def anonymous(folder: Path, server: str) -> str:
    path = folder / "kubeconfig"
    path.write_text(kubeconfig(server, {}))
    return str(path)


async def as_user(plane: ApiServerProcesses, certificate: Certificate) -> ApiServer:
    return ApiServer(await connect(str(plane.kubeconfig(certificate))))


async def next_event(events: AsyncIterator[Event[ConfigMap]]) -> Event[ConfigMap]:
    """Return the next event that is about an object."""
    async with asyncio.timeout(SECONDS):
        while True:
            event = await anext(events)
            if event.change is not Change.BOOKMARK:
                return event


async def first_of(kube: Kube, chosen: Selection, version: str) -> Event[ConfigMap]:
    async with aclosing(kube.watch(CONFIG_MAP, chosen, version=version)) as events:
        return await next_event(events)


async def eventually(condition: Any, what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        await asyncio.sleep(0.02)


async def test_what_is_created_is_read_back_with_an_identity(place: Place) -> None:
    made = await place.put("a", key="value")
    read = await place.kube.get(CONFIG_MAP, "a", place.namespace)
    assert read == made
    assert read.data == {"key": "value"}
    assert read.metadata.uid
    assert read.metadata.resource_version


async def test_an_object_that_is_not_there_is_not_found(place: Place) -> None:
    with pytest.raises(errors.NotFoundError, match="missing"):
        await place.kube.get(CONFIG_MAP, "missing", place.namespace)
    with pytest.raises(errors.NotFoundError):
        await place.kube.patch(CONFIG_MAP, "missing", {"data": {}}, namespace=place.namespace)


async def test_a_second_object_of_the_same_name_conflicts(place: Place) -> None:
    await place.put("a")
    with pytest.raises(errors.ConflictError):
        await place.put("a")


async def test_a_list_comes_in_pages_of_one_version(place: Place) -> None:
    for number in range(5):
        await place.put(f"m{number}")
    first = await place.kube.list(CONFIG_MAP, place.all(app="x"), limit=2)
    await place.put("late")
    second = await place.kube.list(CONFIG_MAP, place.all(app="x"), limit=9, more=first.more)
    names = [o.metadata.name for o in (*first.objects, *second.objects)]
    assert names == [f"m{n}" for n in range(5)]
    assert second.more == ""
    assert second.version == first.version


async def test_a_selection_takes_labels_and_a_name(place: Place) -> None:
    await place.kube.create(CONFIG_MAP, body("a", {}, app="y"), place.namespace)
    await place.put("b")
    by_label = await place.kube.list(CONFIG_MAP, place.all(app="y"), limit=9)
    named = Selection(namespace=place.namespace, name="b")
    by_name = await place.kube.list(CONFIG_MAP, named, limit=9)
    assert [o.metadata.name for o in by_label.objects] == ["a"]
    assert [o.metadata.name for o in by_name.objects] == ["b"]


async def test_a_watch_reports_every_change_after_its_version(place: Place) -> None:
    await place.put("old")
    page = await place.kube.list(CONFIG_MAP, place.all(app="x"), limit=9)
    await place.put("new", n="1")
    watch = place.kube.watch(CONFIG_MAP, place.all(app="x"), version=page.version)
    async with aclosing(watch) as events:
        added = await next_event(events)
        await place.kube.patch(CONFIG_MAP, "new", {"data": {"n": "2"}}, namespace=place.namespace)
        modified = await next_event(events)
        await place.remove("new")
        deleted = await next_event(events)
    seen = [(e.change, e.object.data["n"]) for e in (added, modified, deleted) if e.object]
    assert seen == [(Change.ADDED, "1"), (Change.MODIFIED, "2"), (Change.DELETED, "2")]
    versions = [int(e.version) for e in (added, modified, deleted)]
    assert versions == sorted(set(versions))


async def test_an_open_watch_says_so_before_anything_happens(place: Place) -> None:
    page = await place.kube.list(CONFIG_MAP, place.all(app="x"), limit=9)
    watch = place.kube.watch(CONFIG_MAP, place.all(app="x"), version=page.version)
    async with aclosing(watch) as events, asyncio.timeout(SECONDS):
        first = await anext(events)
    assert (first.change, first.version, first.object) == (Change.BOOKMARK, page.version, None)


async def test_an_object_that_leaves_the_selection_is_deleted_for_its_watch(place: Place) -> None:
    await place.put("a")
    page = await place.kube.list(CONFIG_MAP, place.all(app="x"), limit=9)
    watch = place.kube.watch(CONFIG_MAP, place.all(app="x"), version=page.version)
    async with aclosing(watch) as events:
        relabel = {"metadata": {"labels": {"app": "y"}}}
        await place.kube.patch(CONFIG_MAP, "a", relabel, namespace=place.namespace)
        assert (await next_event(events)).change is Change.DELETED
        back = {"metadata": {"labels": {"app": "x"}}}
        await place.kube.patch(CONFIG_MAP, "a", back, namespace=place.namespace)
        assert (await next_event(events)).change is Change.ADDED


# A real server forgets in a restart: the last test of this file.
@pytest.mark.parametrize("place", ["fake", "http"], indirect=True)
async def test_a_watch_from_a_forgotten_version_is_gone(place: Place) -> None:
    assert place.fake is not None
    place.fake.compact()
    with pytest.raises(errors.GoneError):
        await first_of(place.kube, place.all(), version="1")


async def test_a_merge_patch_removes_what_is_null_and_keeps_the_rest(place: Place) -> None:
    await place.put("a", keep="1", drop="2")
    patched = await place.kube.patch(
        CONFIG_MAP, "a", {"data": {"drop": None, "add": "3"}}, namespace=place.namespace
    )
    assert patched.data == {"keep": "1", "add": "3"}


async def test_a_patch_of_an_old_version_conflicts(place: Place) -> None:
    old = await place.put("a")
    await place.kube.patch(CONFIG_MAP, "a", {"data": {"n": "1"}}, namespace=place.namespace)
    late = {"metadata": {"resourceVersion": old.metadata.resource_version}, "data": {"n": "2"}}
    with pytest.raises(errors.ConflictError):
        await place.kube.patch(CONFIG_MAP, "a", late, namespace=place.namespace)


async def test_the_values_of_a_secret_are_bytes(place: Place) -> None:
    content = {"key": base64.b64encode(b"\x00 pem").decode()}
    body_ = {"metadata": {"name": "a"}, "type": "Opaque", "data": content}
    made = await place.kube.create(SECRET, body_, place.namespace)
    assert made.data == {"key": b"\x00 pem"}
    assert (await place.kube.get(SECRET, "a", place.namespace)).data == made.data


async def test_an_api_service_comes_to_trust_an_authority(place: Place) -> None:
    """Kubernetes allows no authority beside insecureSkipTLSVerify: both change at once."""
    group = f"g{uuid.uuid4().hex[:8]}.tests.invalid"
    name = f"v1.{group}"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": "default", "name": "nowhere", "port": 443},
        "insecureSkipTLSVerify": True,
    }
    made = await place.kube.create(API_SERVICE, {"metadata": {"name": name}, "spec": spec})
    assert made.spec.insecure_skip_tls_verify
    assert made.spec.service == ServiceReference(namespace="default", name="nowhere")
    issued = certificates.issue("ca", authority=True, lifetime=datetime.timedelta(days=1))
    trusting = {
        "caBundle": base64.b64encode(issued.certificate_pem).decode(),
        "insecureSkipTLSVerify": None,
    }
    changed = await place.kube.patch(API_SERVICE, name, {"spec": trusting})
    assert changed.spec.ca_bundle == issued.certificate_pem
    assert not changed.spec.insecure_skip_tls_verify
    assert changed.spec.service == made.spec.service


HEARTBEAT = "2026-01-02T03:04:05Z"


def said(kind: str, status: str = "False", **more: str) -> dict[str, str]:
    times = {"lastHeartbeatTime": HEARTBEAT, "lastTransitionTime": HEARTBEAT}
    return {"type": kind, "status": status, "reason": "Tested", **times, **more}


async def node(place: Place, *conditions: dict[str, str], **spec: Any) -> WholeNode:
    """Make a node; Kubernetes adds a taint of its own to a new one."""
    name = f"n-{uuid.uuid4().hex[:8]}"
    body = {"metadata": {"name": name, "annotations": {"foreign": "kept"}}, "spec": spec}
    await place.kube.create(WHOLE_NODE, body)
    return await status(place, name, *conditions)


async def status(place: Place, name: str, *conditions: dict[str, Any]) -> WholeNode:
    patch = {"status": {"conditions": list(conditions)}}
    return await place.kube.patch(WHOLE_NODE, name, patch, subresource="status", strategic=True)


async def test_conditions_are_merged_by_their_type(place: Place) -> None:
    """The kubelet's stay as they are, whatever we know of them."""
    made = await node(place, said("Ready", "True", message="kubelet is fine"), said("Ours"))
    name, ready = made.metadata.name, made.condition("Ready")
    changed = await status(place, name, said("Ours", "True", message="m"), said("New"))
    ours = changed.condition("Ours")
    assert ours is not None
    assert (ours.status, ours.message) == ("True", "m")
    assert changed.condition("New") is not None
    assert changed.condition("Ready") == ready
    assert len(changed.status.conditions) == 3


async def test_a_condition_is_deleted_by_its_type(place: Place) -> None:
    made = await node(place, said("Ready", "True"), said("Ours"))
    gone = {"$patch": "delete", "type": "Ours"}
    changed = await status(place, made.metadata.name, gone)
    assert changed.status.conditions == (made.condition("Ready"),)
    again = await status(place, made.metadata.name, gone)
    assert again.status.conditions == changed.status.conditions


async def test_a_patch_of_the_status_leaves_the_spec_alone(place: Place) -> None:
    made = await node(place)
    patch = {"spec": {"unschedulable": True}, "status": {"conditions": [said("Ours")]}}
    changed = await place.kube.patch(
        WHOLE_NODE, made.metadata.name, patch, subresource="status", strategic=True
    )
    assert changed.condition("Ours") is not None
    assert not changed.spec.unschedulable


async def test_a_node_is_cordoned_and_marked_by_one_patch(place: Place) -> None:
    made = await node(place, podCIDR="192.0.2.0/24")
    taint = {"key": "tests.invalid/bad", "effect": "NoSchedule", "value": "x"}
    patch = {
        "metadata": {
            "resourceVersion": made.metadata.resource_version,
            "annotations": {"mark": "1"},
        },
        "spec": {"unschedulable": True, "taints": [*made.spec.taints, taint]},
    }
    changed = await place.kube.patch(WHOLE_NODE, made.metadata.name, patch)
    assert changed.spec.unschedulable
    assert changed.annotations == {"foreign": "kept", "mark": "1"}
    assert changed.spec.taints == (*made.spec.taints, taint)
    with pytest.raises(errors.ConflictError):
        await place.kube.patch(WHOLE_NODE, made.metadata.name, patch)
    free = {"metadata": {"annotations": {"mark": None}}, "spec": {"unschedulable": None}}
    freed = await place.kube.patch(WHOLE_NODE, made.metadata.name, free)
    assert not freed.spec.unschedulable
    assert freed.annotations == {"foreign": "kept"}
    assert freed.spec.taints == changed.spec.taints


async def test_an_event_counts_on(place: Place) -> None:
    body = {
        "metadata": {"name": "a.1"},
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": place.namespace, "uid": "u"},
        "type": "Warning",
        "reason": "Tested",
        "message": "first",
        "count": 1,
        "firstTimestamp": HEARTBEAT,
        "lastTimestamp": HEARTBEAT,
        "source": {"component": "tests", "host": "n"},
    }
    made = await place.kube.create(EVENT, body, place.namespace)
    patch = {"count": 3, "message": "third", "lastTimestamp": "2026-01-02T03:09:05Z"}
    counted = await place.kube.patch(EVENT, "a.1", patch, namespace=place.namespace)
    assert (counted.count, counted.message) == (3, "third")
    assert counted.first_timestamp == made.first_timestamp
    assert counted.involved_object.uid == "u"


async def test_what_the_monitor_says_of_a_node_is_an_event_that_kubernetes_takes(
    place: Place,
) -> None:
    """Events of nodes have no namespace of their own, and what is too long is refused."""
    made = await node(place)
    pod = Holder(namespace=place.namespace, pod="p", uid="u")
    events = Events(place.kube, made.metadata.name)
    for now in (0.0, 400.0):
        for about in (of_node(made), of_pod(pod)):
            events.say(about, "GPULost", "é" * 2000, gpu="GPU-1", now=now, wall=1.8e9 + now)
        await events.flush(now)
    assert events.dropped == 0
    page = await place.kube.list(EVENT, Selection(namespace="default"), limit=500)
    (told,) = (e for e in page.objects if e.involved_object.name == made.metadata.name)
    assert (told.involved_object.uid, told.count) == (made.metadata.uid, 2)
    page = await place.kube.list(EVENT, place.all(), limit=500)
    assert [(e.involved_object.uid, e.count) for e in page.objects] == [("u", 2)]


async def test_a_daemon_set_says_how_many_nodes_it_wants(place: Place) -> None:
    label = {"app": "x"}
    container = {"name": "c", "image": "tests.invalid/c"}
    template = {"metadata": {"labels": label}, "spec": {"containers": [container]}}
    body = {
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": label}, "template": template},
    }
    made = await place.kube.create(DAEMON_SET, body, place.namespace)
    assert made.status.desired_number_scheduled == 0
    counts = {"currentNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 2}
    patch = {"status": counts | {"desiredNumberScheduled": 3}}
    await place.kube.patch(DAEMON_SET, "a", patch, namespace=place.namespace, subresource="status")
    found = await place.kube.get(DAEMON_SET, "a", place.namespace)
    assert (found.status.desired_number_scheduled, found.status.number_ready) == (3, 2)


@asynccontextmanager
async def following(place: Place) -> AsyncIterator[Cache[ConfigMap]]:
    """Run a cache of the place's objects with the label app=x."""
    waits = Backoff(first_seconds=0.01, most_seconds=0.1)
    cache = Cache(place.kube, CONFIG_MAP, place.all(app="x"), waits)
    task = asyncio.ensure_future(cache.run())
    try:
        await eventually(lambda: cache.synced, "the first list")
        yield cache
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def held(cache: Cache[ConfigMap]) -> dict[str, dict[str, str]]:
    return {name: o.data for (_, name), o in cache.objects.items()}


async def test_a_cache_follows_what_others_do(place: Place) -> None:
    await place.put("a", n="1")
    await place.put("b")
    async with following(place) as cache:
        await place.kube.patch(CONFIG_MAP, "a", {"data": {"n": "2"}}, namespace=place.namespace)
        await place.remove("b")
        await place.put("c")
        await eventually(lambda: held(cache) == {"a": {"n": "2"}, "c": {}}, "the changes")
        assert cache.fault == ""


async def test_an_account_without_rights_is_forbidden(api_server: ApiServerProcesses) -> None:
    client = await as_user(api_server, api_server.nobody)
    with pytest.raises(errors.ForbiddenError, match="nobody"):
        await client.list(CONFIG_MAP, Selection(), limit=1)
    await client.close()


async def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    client = ApiServer(await connect(anonymous(tmp_path, f"http://127.0.0.1:{free_port()}")))
    with pytest.raises(errors.UnavailableError, match="GET /api/v1/configmaps"):
        await client.list(CONFIG_MAP, Selection(), limit=1)
    await client.close()


async def test_the_cluster_publishes_its_front_proxy_where_we_look(
    api_server: ApiServerProcesses,
) -> None:
    client = await as_user(api_server, api_server.admin)
    found = await client.get(CONFIG_MAP, "extension-apiserver-authentication", "kube-system")
    assert "BEGIN CERTIFICATE" in found.data["client-ca-file"]
    await client.close()


async def test_a_cache_outlives_a_restart_after_which_old_versions_are_gone(
    api_server: ApiServerProcesses,
) -> None:
    server = await as_user(api_server, api_server.admin)
    place = Place(server, "default")
    await place.put("before")
    async with following(place) as cache:
        await asyncio.to_thread(api_server.restart)
        await place.put("after")
        await eventually(lambda: set(held(cache)) == {"before", "after"}, "the new object")
        with pytest.raises(errors.GoneError):
            await first_of(server, place.all(), version="1")
    await server.close()
