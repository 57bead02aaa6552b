"""How to reach the API server, and as whom: in-cluster service account or kubeconfig file."""

import os
from pathlib import Path

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, kube_config
from kubernetes.aio.config.incluster_config import load_incluster_config

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ConfigurationError(ValueError):
    """There is no usable connection to the API server; says what was tried and what to do."""


async def connect(kubeconfig: str, context: str = "") -> ApiClient:
    """Return a client for the API server named by a kubeconfig file, or else by our own pod.

    Args:
        kubeconfig: path of the file; empty to use our pod's service account, whose rotating token
            is reread every minute.
        context: of the file; empty for its current one.

    Raises:
        ConfigurationError: the file is missing or wrong, or we are not running in a pod.
    """
    configuration = Configuration()
    if kubeconfig:
        await _from_file(kubeconfig, context, configuration)
    else:
        _from_pod(configuration)
    # Our lists and watches do their own retries, which are logged and counted.
    configuration.retries = None
    return ApiClient(configuration)


def users_kubeconfig(given: str) -> str:
    """Return the kubeconfig of a person as kubectl chooses it, or nothing if there is none.

    ``KUBECONFIG`` may list several files, which are merged.
    """
    files = given or os.environ.get("KUBECONFIG", "")
    if files:
        return files
    usual = Path.home() / ".kube" / "config"
    return str(usual) if usual.is_file() else ""


def namespace_of(kubeconfig: str, context: str = "") -> str:
    """Return the namespace that a context stands for: ``default`` if it names none.

    Raises:
        ConfigurationError: the file or the context is missing or wrong.
    """
    if not kubeconfig:
        return own_namespace()
    _check_exists(kubeconfig)
    try:
        contexts, current = kube_config.list_kube_config_contexts(kubeconfig)
    except (ConfigException, OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"kubeconfig {kubeconfig} cannot be used: {error}") from error
    named = {one["name"]: one["context"] for one in contexts} | {"": current["context"]}
    if context not in named:
        known = ", ".join(sorted(name for name in named if name))
        raise ConfigurationError(
            f"kubeconfig {kubeconfig} has no context {context}; it has {known}"
        )
    return named[context].get("namespace") or "default"


def _check_exists(files: str) -> None:
    if not any(os.path.isfile(os.path.expanduser(one)) for one in files.split(os.pathsep)):  # noqa: PTH111, PTH113 - read by the library
        raise ConfigurationError(f"kubeconfig {files} does not exist")


async def _from_file(path: str, context: str, configuration: Configuration) -> None:
    _check_exists(path)
    try:
        await kube_config.load_kube_config(
            path, context=context or None, client_configuration=configuration
        )
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
