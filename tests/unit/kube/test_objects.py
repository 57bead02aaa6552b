"""Objects as the API server writes them, decoded into what we use of them."""

import subprocess
import sys

import msgspec
import pytest

from slicewatch.kube import errors
from slicewatch.kube.configuration import ConfigurationError, connect
from slicewatch.kube.objects import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    POD,
    EndpointSlice,
    Metadata,
    Pod,
    Selection,
)

POD_JSON = b"""{
 "kind": "Pod", "apiVersion": "v1",
 "metadata": {"name": "a", "namespace": "ml", "uid": "u", "resourceVersion": "7",
  "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"},
  "deletionTimestamp": "2026-01-02T00:00:00Z", "managedFields": [{"manager": "kubelet"}],
  "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9",
   "uid": "r", "controller": true, "blockOwnerDeletion": true}]},
 "spec": {"nodeName": "n1", "volumes": [],
  "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}], "containers": [
   {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2"},
    "requests": {"cpu": "250m", "nvidia.com/gpu": "2"}}}],
  "initContainers": [{"name": "side", "restartPolicy": "Always", "resources": {}}]},
 "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
}"""


def test_a_pod_keeps_what_we_use_and_nothing_else() -> None:
    pod = msgspec.json.decode(POD_JSON, type=Pod)
    assert pod.key == ("ml", "a")
    assert pod.metadata.owner_references[0].name == "web-7d9"
    assert pod.spec.node_name == "n1"
    assert [claim.name for claim in pod.spec.resource_claims] == ["gpu"]
    assert pod.spec.containers[0].resources.requests["nvidia.com/gpu"] == "2"
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert not pod.finished


def test_a_nearly_empty_pod_decodes() -> None:
    pod = msgspec.json.decode(b'{"metadata":{"name":"a"}}', type=Pod)
    assert pod.spec.node_name == ""
    assert pod.status.phase == ""


def test_a_slice_without_endpoints_arrives_as_null() -> None:
    piece = msgspec.json.decode(
        b'{"metadata":{"name":"s"},"endpoints":null,"ports":null}', type=EndpointSlice
    )
    assert piece.endpoints is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (POD.path(), "/api/v1/pods"),
        (POD.path("ml"), "/api/v1/namespaces/ml/pods"),
        (CONFIG_MAP.path("ml", "a"), "/api/v1/namespaces/ml/configmaps/a"),
        (
            ENDPOINT_SLICE.path("ml"),
            "/apis/discovery.k8s.io/v1/namespaces/ml/endpointslices",
        ),
    ],
)
def test_a_kind_knows_its_paths(path: str, expected: str) -> None:
    assert path == expected


def test_a_selection_and_its_query_choose_the_same_objects() -> None:
    chosen = Selection(namespace="ml", name="a", labels={"b": "2", "a": "1"})
    assert chosen.query() == {"labelSelector": "a=1,b=2", "fieldSelector": "metadata.name=a"}
    fits = Metadata(name="a", namespace="ml", labels={"a": "1", "b": "2", "c": "3"})
    assert chosen.takes(fits)
    assert not chosen.takes(msgspec.structs.replace(fits, namespace="other"))
    assert not chosen.takes(msgspec.structs.replace(fits, name="b"))
    assert not chosen.takes(msgspec.structs.replace(fits, labels={"a": "1"}))
    assert Selection().query() == {}


def test_the_selection_of_a_node_takes_what_is_on_it_from_the_cache_of_the_server() -> None:
    chosen = Selection(node="n1")
    assert chosen.query() == {"fieldSelector": "spec.nodeName=n1", "resourceVersion": "0"}
    named = Selection(name="a", node="n1").query()
    assert named["fieldSelector"] == "metadata.name=a,spec.nodeName=n1"
    assert chosen.takes(Metadata(name="a"), "n1")
    assert not chosen.takes(Metadata(name="a"), "n2")
    assert not chosen.takes(Metadata(name="a"))


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (401, errors.ForbiddenError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (410, errors.GoneError),
        (429, errors.UnavailableError),
        (500, errors.UnavailableError),
        (504, errors.UnavailableError),
        (422, errors.KubeError),
    ],
)
def test_a_status_becomes_the_error_that_says_what_to_do(
    code: int, kind: type[errors.KubeError]
) -> None:
    error = errors.of_status(code, "why")
    assert type(error) is kind
    assert str(error) == "why"


async def test_a_missing_kubeconfig_is_named() -> None:
    with pytest.raises(ConfigurationError, match="/nowhere/config does not exist"):
        await connect("/nowhere/config")


async def test_outside_a_pod_a_kubeconfig_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigurationError, match="--kubeconfig"):
        await connect("")


def test_the_generated_models_are_never_loaded() -> None:
    program = (
        "import sys, slicewatch.kube.client, slicewatch.kube.configuration;"
        "print([m for m in sys.modules if m.startswith('kubernetes.') and '.models.' in m])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
