"""Where the API server is and who we are there: in-cluster account or kubeconfig file."""

import os
from pathlib import Path

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, kube_config
from kubernetes.aio.config.incluster_config import load_incluster_config

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ConfigurationError(ValueError):
    """There is no usable way to the API server; says what was tried and what to do."""


async def connect(kubeconfig: str) -> ApiClient:
    """Return a client of the API server that a kubeconfig file, or else the pod we are in, names.

    Args:
        kubeconfig: path of the file; empty to use the service account of our pod, whose token
            is read again each minute, as it is rotated.

    Raises:
        ConfigurationError: the file is missing or wrong, or we run in no pod.
    """
    configuration = Configuration()
    if kubeconfig:
        await _from_file(kubeconfig, configuration)
    else:
        _from_pod(configuration)
    # Lists and watches have retries of their own here, which log and count.
    configuration.retries = None
    return ApiClient(configuration)


async def _from_file(path: str, configuration: Configuration) -> None:
    if not os.path.isfile(path):  # noqa: ASYNC240, PTH113 - once, at the start
        raise ConfigurationError(f"kubeconfig {path} does not exist")
    try:
        await kube_config.load_kube_config(path, client_configuration=configuration)
    except (ConfigException, OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"kubeconfig {path} cannot be used: {error}") from error


def _from_pod(configuration: Configuration) -> None:
    try:
        load_incluster_config(configuration)
    except (ConfigException, OSError) as error:
        raise ConfigurationError(
            f"no kubeconfig is given and this is no pod with a service account ({error}); "
            "set --kubeconfig"
        ) from error


def own_namespace(default: str = "default") -> str:
    """Return the namespace of the pod that we run in, or ``default`` outside of pods."""
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip() or default
    except OSError:
        return default
