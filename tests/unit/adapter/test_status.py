"""Refusals as clients decode them."""

import json

import pytest

from adapter.api.status import Reason, Refusal, Subject

PODS = Subject(group="custom.metrics.k8s.io", kind="pods", name="gpu_utilization")


def test_a_refusal_is_a_status_that_says_what_it_is_about() -> None:
    body = json.loads(Refusal(Reason.NotFound, "there is none").body(PODS))
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "there is none",
        "reason": "NotFound",
        "details": {
            "name": "gpu_utilization", "group": "custom.metrics.k8s.io", "kind": "pods",
        },
        "code": 404,
    }  # fmt: skip


def test_details_are_left_out_where_nothing_is_known() -> None:
    assert "details" not in json.loads(Refusal(Reason.NotFound, "no such path").body())


def test_a_parameter_at_fault_is_named_as_the_cause() -> None:
    refusal = Refusal(Reason.BadRequest, "no good", field="labelSelector")
    assert json.loads(refusal.body())["details"] == {
        "causes": [{"reason": "FieldValueInvalid", "message": "no good", "field": "labelSelector"}]
    }


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.BadRequest, 400), (Reason.Unauthorized, 401), (Reason.NotFound, 404),
        (Reason.MethodNotAllowed, 405), (Reason.NotAcceptable, 406), (Reason.InternalError, 500),
        (Reason.ServiceUnavailable, 503), (Reason.Timeout, 504),
    ],
)  # fmt: skip
def test_every_reason_has_the_code_that_kubernetes_gives_it(reason: Reason, code: int) -> None:
    body = json.loads(Refusal(reason, "m").body())
    assert (body["reason"], body["code"]) == (reason.name, code)


def test_there_is_no_reason_that_makes_clients_wait() -> None:
    assert 429 not in {int(reason.value) for reason in Reason}


def test_what_is_no_text_is_still_a_status() -> None:
    subject = Subject(group="g", kind="k\udcff", name="\udc80")
    body = json.loads(Refusal(Reason.NotFound, "nothing at /\udcff").body(subject))
    assert body["message"] == "nothing at /?"
    assert body["details"] == {"name": "?", "group": "g", "kind": "k?"}
