"""How to reach the API server, and as whom: in-cluster service account or kubeconfig file."""

import os
from pathlib import Path

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, kube_config
from kubernetes.aio.config.incluster_config import load_incluster_config

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ConfigurationError(ValueError):
    """There is no usable connection to the API server; says what was tried and what to do."""


async def connect(kubeconfig: str) -> ApiClient:
    """Return a client for the API server named by a kubeconfig file, or else by our own pod.

    Args:
        kubeconfig: path of the file; empty to use our pod's service account, whose rotating token
            is reread every minute.

    Raises:
        ConfigurationError: the file is missing or wrong, or we are not running in a pod.
    """
    configuration = Configuration()
    if kubeconfig:
        await _from_file(kubeconfig, configuration)
    else:
        _from_pod(configuration)
    # Our lists and watches do their own retries, which are logged and counted.
    configuration.retries = None
    return ApiClient(configuration)


async def _from_file(path: str, configuration: Configuration) -> None:
    if not os.path.isfile(path):  # noqa: ASYNC240, PTH113 - once per connection
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
            f"no kubeconfig given, and this is not a pod with a service account ({error}); "
            "set --kubeconfig"
        ) from error


def own_namespace(default: str = "default") -> str:
    """Return the namespace of our own pod, or ``default`` outside a pod."""
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip() or default
    except OSError:
        return default
