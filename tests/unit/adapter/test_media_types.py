"""Which Accept headers JSON is an answer to."""

import pytest

from adapter.api.media_types import accepts_json

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        ("", True),
        ("application/vnd.kubernetes.protobuf", False),
        ("application/vnd.kubernetes.protobuf, */*", True),
        ("application/vnd.kubernetes.protobuf,application/json", True),
        ("application/yaml", False),
        ("text/html", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("application/*", True),
        ("application/json; charset=utf-8", True),
        ("Application/JSON", True),
        ("*/*;q=0.1", True),
        ("*/*;q=0", False),
        ("application/json;q=0", False),
        ("application/json; Q=0.0, */*", False),
        ("application/*;q=0, */*;q=1", False),
        ("application/json;q=high", True),
        ("application/json;q=nan", True),
        ("application/json;q=-1", True),
        ("application/json;q=", True),
        (TABLE, False),
        (f"{TABLE},application/json", True),
        (f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", True),
        (f"{TABLE},*/*", True),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", False),
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", True),
        (";;;,=,", False),
    ],
)
def test_json_is_served_to_those_who_take_it(accept: str, accepted: bool) -> None:
    assert accepts_json(accept) is accepted
