"""The backend that prometheus-adapter's own flags describe, so that a deployment keeps them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from adapter.sources.prometheus.backend import BackendConfig, Verb
from adapter.sources.prometheus.configuration import DEFAULT, address, headers_of

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def backend_of_flags(
    url: str,
    *,
    verb: str = "POST",
    headers: Mapping[str, str] | None = None,
    in_cluster: bool = False,
    auth_config: str = "",
    token_file: str = "",
    ca_file: str = "",
    certificate_file: str = "",
    key_file: str = "",
) -> BackendConfig | None:
    """Return the backend; None without a URL.

    Arguments are those flags: ``url`` may have a user and a password, ``in_cluster`` authenticates
    as the pod's service account, and ``auth_config`` is refused, since only its parts are taken.

    Raises:
        ValueError: it cannot be used; names the setting, and never a password.
    """
    if auth_config:
        raise ValueError(
            "prometheus_auth_config: kubeconfig files are not read here; give what is in it by "
            "prometheus_token_file, prometheus_ca_file and prometheus_client_tls_cert_file"
        )
    if not url:
        return None
    try:
        base, access = address(url)
        sent = headers_of(headers or {})
    except ValueError as error:
        raise ValueError(f"prometheus_url, prometheus_header: {error}") from error
    if verb.upper() not in set(Verb):
        raise ValueError(f"prometheus_verb: {verb!r} is neither POST nor GET")
    if bool(certificate_file) != bool(key_file):
        raise ValueError(
            "prometheus_client_tls_cert_file, prometheus_client_tls_key_file: set both or neither"
        )
    if in_cluster:
        token_file = token_file or str(SERVICE_ACCOUNT / "token")
        ca_file = ca_file or str(SERVICE_ACCOUNT / "ca.crt")
    if token_file and access.username:
        raise ValueError("prometheus_url has a user, and there is a token as well: keep one")
    return BackendConfig(
        name=DEFAULT,
        url=base,
        verb=Verb(verb.upper()),
        headers=sent,
        access=replace(
            access,
            token_file=token_file,
            ca_file=ca_file,
            certificate_file=certificate_file,
            key_file=key_file,
        ),
    )
