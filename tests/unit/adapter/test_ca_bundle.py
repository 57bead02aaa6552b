"""What stays in a caBundle, for how long, whoever writes into it."""

import base64
import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.ca_bundle import OVERLAP_SECONDS, CaBundle, certificates
from testbed.cluster.pki import Pki


def pem(number: int) -> bytes:
    body = base64.b64encode(bytes([number]) * 3)
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"\n-----END CERTIFICATE-----\n"


def test_certificates_are_the_same_however_their_text_is_broken_into_lines(tmp_path: Path) -> None:
    text = Pki(tmp_path).ca.read_bytes()
    body = b"".join(text.splitlines()[1:-1])
    other = (
        b"subject=ca\r\n-----BEGIN CERTIFICATE-----\r\n" + body + b"\r\n-----END CERTIFICATE-----"
    )
    assert certificates(text) == certificates(other) == (text,)
    assert certificates(text + other) == (text,)


def test_what_is_no_certificate_is_left_out() -> None:
    key = b"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
    odd = pem(1).replace(b"AQEB", b"AQE")
    assert certificates(b"other" + key + odd + pem(2)) == (pem(2),)


LOOK_SECONDS = 60
ROTATION_SECONDS = 2000


@settings(deadline=None)
@given(
    lags=st.lists(st.integers(0, int(OVERLAP_SECONDS) - 1), min_size=1, max_size=4),
    orders=st.randoms(use_true_random=False),
)
def test_replicas_that_learn_late_stay_trusted_and_the_old_authority_goes_in_the_end(
    lags: list[int], orders: random.Random
) -> None:
    replicas = [CaBundle() for _ in lags]
    present = b""
    for now in range(0, 3 * ROTATION_SECONDS, LOOK_SECONDS):
        ours = [pem(max(0, now - lag) // ROTATION_SECONDS) for lag in lags]
        for index in orders.sample(range(len(lags)), len(lags)):
            present = replicas[index].due(present, ours[index], now)
            assert ours[index] in present
        assert all(one in present for one in ours)
    assert certificates(present) == (pem(2),)
