"""Who may read snapshots: by token, by certificate, or everybody."""

import hashlib

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from exporter.access import AccessError, SnapshotAccess, read_tokens


class Transport:
    """As much of a transport as tells who the client is."""

    def __init__(self, common, *sans):
        peer = {"subject": ((("commonName", common),),)} if common else {}
        self._peer = peer | {"subjectAltName": tuple(("DNS", san) for san in sans)} if peer else {}

    def get_extra_info(self, name, default=None):
        return self._peer if name == "peercert" else default


def asked(authorization=None, common=None, sans=()):
    headers = {} if authorization is None else {"Authorization": authorization}
    return make_mocked_request(
        "GET", "/snapshot", headers=headers, transport=Transport(common, *sans)
    )


def tokens(*words):
    return frozenset(hashlib.sha256(word.encode()).digest() for word in words)


def status(access, **request):
    refusal = access.refusal(asked(**request))
    return None if refusal is None else refusal.status


def test_with_nothing_configured_everybody_may():
    access = SnapshotAccess()
    assert not access.restricted
    assert status(access) is None
    assert status(access, authorization="Bearer whatever") is None


@pytest.mark.parametrize("shown", ["Bearer old", "bearer new", "Bearer  new "])
def test_every_token_of_the_file_is_valid(shown):
    assert status(SnapshotAccess(tokens=tokens("old", "new")), authorization=shown) is None


@pytest.mark.parametrize(
    "shown", [None, "", "Bearer", "Bearer ol", "Bearer old new", "Basic old", "old"]
)
def test_anything_else_is_unauthorized_and_told_what_to_send(shown):
    access = SnapshotAccess(tokens=tokens("old", "new"))
    refusal = access.refusal(asked(shown))
    assert isinstance(refusal, web.Response)
    assert refusal.status == 401
    assert refusal.headers["WWW-Authenticate"].startswith("Bearer")
    assert "send a token of snapshot_token_file as Authorization: Bearer" in refusal.text


@pytest.mark.parametrize(("common", "sans"), [("adapter", ()), ("x", ("adapter",))])
def test_a_client_of_a_listed_name_may(common, sans):
    access = SnapshotAccess(names=frozenset({"adapter"}))
    assert status(access, common=common, sans=sans) is None


def test_a_client_of_another_name_is_forbidden_and_told_which_it_has():
    access = SnapshotAccess(names=frozenset({"adapter"}), tokens=tokens("t"))
    refusal = access.refusal(asked(common="grafana", sans=("adapter.other",)))
    assert refusal.status == 403
    assert "the client certificate of grafana has no name of snapshot_client_names" in refusal.text


def test_a_client_of_another_name_may_show_a_token():
    access = SnapshotAccess(names=frozenset({"adapter"}), tokens=tokens("t"))
    assert status(access, common="grafana", authorization="Bearer t") is None
    assert status(access, common="grafana", authorization="Bearer u") == 401


def test_without_tokens_a_client_without_certificate_is_forbidden():
    refusal = SnapshotAccess(names=frozenset({"adapter"})).refusal(asked("Bearer x"))
    assert refusal.status == 403
    assert "show a client certificate" in refusal.text


@given(st.text(max_size=30))
def test_any_authorization_is_answered(text):
    assert status(SnapshotAccess(tokens=tokens("old")), authorization=text) in {None, 401}


def test_a_token_file_has_one_token_on_each_line(tmp_path):
    path = tmp_path / "tokens"
    path.write_bytes(b"old\r\n\n  new  \n")
    assert read_tokens(path) == tokens("old", "new")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "has no token; write one on a line"), (b"\n \n", "has no token"),
        (b"good\nwith space\n", "line 2 is no token"), (b"\xff\xfe", "line 1 is no token"),
        (b"nul\0", "line 1 is no token"),
    ],
)  # fmt: skip
def test_a_file_that_would_let_nobody_in_is_refused(tmp_path, content, why):
    path = tmp_path / "tokens"
    path.write_bytes(content)
    with pytest.raises(AccessError, match=why):
        read_tokens(path)
