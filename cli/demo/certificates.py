"""Certificates of the demonstration: the adapter accepts a front proxy only, so we become one."""

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slicewatch.service import certificates

NAME: Final = "front-proxy-client"
LIFETIME: Final = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontProxy:
    """An authority, and a client certificate of it with its key in one file, both PEM."""

    authority: Path
    client: Path


def front_proxy(folder: Path) -> FrontProxy:
    """Write the certificates of a new front proxy into a folder."""
    authority = certificates.issue("slicewatch demo CA", authority=True, lifetime=LIFETIME)
    client = certificates.issue(NAME, issuer=authority, client=True, lifetime=LIFETIME)
    written = FrontProxy(authority=folder / "ca.pem", client=folder / "front-proxy.pem")
    written.authority.write_bytes(authority.certificate_pem)
    written.client.touch(mode=0o600)
    written.client.write_bytes(client.certificate_pem + client.key_pem)
    return written
