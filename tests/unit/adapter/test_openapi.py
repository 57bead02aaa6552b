"""OpenAPI: a clean 404, by which kube-apiserver passes us over without a retry.

A document would gain nothing, since validation and ``kubectl explain`` do not concern resources
that can only be read; but kube-apiserver would merge it into the document of the whole cluster.
Any answer but 200, 304 and 404 makes it retry, and log, for as long as an hour.
"""

import json

import pytest

from testbed.front_proxy import Asker

DOCUMENTS = [
    "/openapi",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/apis/custom.metrics.k8s.io/v1beta1",
    "/openapi/v3/apis/custom.metrics.k8s.io/v1beta1?hash=0",
]


@pytest.mark.parametrize("path", DOCUMENTS)
@pytest.mark.parametrize(
    "accept",
    [
        "", "application/json", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    ],
)  # fmt: skip
async def test_there_is_no_document_in_any_form(ask: Asker, path: str, accept: str) -> None:
    headers = {"Accept": accept} if accept else {}
    answer = await ask(path, **headers)
    assert answer.status == 404
    assert json.loads(answer.body)["reason"] == "NotFound"
    assert answer.headers["Content-Type"].startswith("application/json")


async def test_there_is_none_while_nothing_is_known_of_any_pod(ask: Asker) -> None:
    ask.port.cache.synced = False
    assert (await ask("/openapi/v2")).status == 404
