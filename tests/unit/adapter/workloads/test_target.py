"""Where a pod's page is: its own address and nowhere else."""

import ipaddress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.workloads.target import (
    NoAddressError,
    NotOfferedError,
    Target,
    TargetError,
    of_pod,
)
from slicewatch.kube.objects import Annotations, Metadata, Pod, PodStatus


def pod(ip="10.0.0.7", **annotations):
    given = Annotations(**{"scrape": "true", "port": "8000"} | annotations)
    return Pod(
        metadata=Metadata(name="a", namespace="ml", uid="u", annotations=given),
        status=PodStatus(phase="Running", pod_ip=ip),
    )


@pytest.mark.parametrize(
    ("annotations", "url"),
    [
        ({}, "http://10.0.0.7:8000/metrics"),
        ({"path": "/stats/prometheus?format=text"}, "http://10.0.0.7:8000/stats/prometheus?format=text"),
        ({"scheme": "https", "port": "65535"}, "https://10.0.0.7:65535/metrics"),
        ({"ip": "fd00::7"}, "http://[fd00::7]:8000/metrics"),
        ({"path": "/a%2Fb"}, "http://10.0.0.7:8000/a%2Fb"),
    ],
)  # fmt: skip
def test_the_page_is_at_the_address_of_the_pod(annotations, url):
    target = of_pod(pod(**annotations))
    assert (str(target.url), target.uid) == (url, "u")


def test_a_pod_is_decoded_with_what_a_scrape_needs_and_no_other_annotation():
    written = {
        "metadata": {
            "name": "a",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9000",
                "prometheus.io/path": "/p",
                "prometheus.io/scheme": "https",
            },
        },
        "status": {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]},
    }
    decoded = msgspec.json.decode(msgspec.json.encode(written), type=Pod)
    assert str(of_pod(decoded).url) == "https://10.0.0.7:9000/p"
    assert decoded.metadata.annotations.__struct_fields__ == ("scrape", "port", "path", "scheme")


@pytest.mark.parametrize("scrape", ["", "false", "True", "1"])
def test_a_pod_that_does_not_offer_its_metrics_is_not_scraped(scrape):
    with pytest.raises(NotOfferedError, match=r"prometheus\.io/scrape is"):
        of_pod(pod(scrape=scrape))


def test_a_pod_without_an_address_has_no_page_yet():
    with pytest.raises(NoAddressError):
        of_pod(pod(ip=""))


@pytest.mark.parametrize(
    "port", ["", "0", "65536", "-1", "+80", "8_0", "８０", "http", "80 ", "1e3"]
)
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(TargetError, match=r"prometheus\.io/port is .*write"):
        of_pod(pod(port=port))


@pytest.mark.parametrize(
    "path",
    [
        "metrics", "//evil.example/metrics", "http://evil.example/", "@evil.example", "/a b",
        "/a#b", "/a\r\nHost: evil.example", "/\\evil.example", "/é", "/" + "a" * 1024,
    ],
)  # fmt: skip
def test_a_path_that_could_lead_elsewhere_is_refused(path):
    with pytest.raises(TargetError, match=r"prometheus\.io/path is .*write a path"):
        of_pod(pod(path=path))


@pytest.mark.parametrize("scheme", ["ftp", "HTTP", "http://evil.example/"])
def test_a_scheme_that_is_none_is_refused(scheme):
    with pytest.raises(TargetError, match="write http or https"):
        of_pod(pod(scheme=scheme))


@pytest.mark.parametrize(
    "ip", ["127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "localhost"]
)
def test_an_address_that_no_pod_can_have_is_never_asked(ip):
    with pytest.raises(TargetError, match="its address"):
        of_pod(pod(ip=ip))


@given(path=st.text(max_size=40), scheme=st.text(max_size=8), port=st.text(max_size=6))
def test_no_annotation_ever_names_a_host(path, scheme, port):
    try:
        target = of_pod(pod(path=path, scheme=scheme, port=port))
    except TargetError:
        return
    assert ipaddress.ip_address(str(target.url.host)) == ipaddress.ip_address("10.0.0.7")
    assert target.url.user is None
    assert target.url.port == int(port)


@given(st.from_regex(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,40}", fullmatch=True))
def test_a_path_never_changes_the_authority(path):
    if not path.startswith("//"):
        assert of_pod(pod(path=path)).url.authority == "10.0.0.7:8000"


def test_another_pod_of_the_same_name_has_another_target():
    first = of_pod(pod())
    assert first == of_pod(pod())
    assert first != Target(uid="v", url=first.url)
