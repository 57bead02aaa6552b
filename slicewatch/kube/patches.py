"""What the patches of the API server do to an object's JSON; for those who answer in its place."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from slicewatch.kube import errors

# Lists whose elements a strategic merge patch tells apart; any other is replaced as a whole.
# From ``patchMergeKey`` in Kubernetes' types; taints have none.
MERGE_KEYS: Final[dict[tuple[str, ...], str]] = {
    ("status", "conditions"): "type",
    ("status", "addresses"): "type",
}
DIRECTIVE: Final = "$patch"


def check_version(what: str, patch: Mapping[str, object], current: Mapping[str, Any]) -> None:
    """Check the version that a patch is meant for, if it names one.

    Raises:
        ConflictError: the object has another one.
    """
    metadata = patch.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, Mapping) else None
    if version not in {None, current["metadata"]["resourceVersion"]}:
        raise errors.ConflictError(f"patch {what}: 409 version {version} is old")


def limited(patch: Mapping[str, object], subresource: str) -> Mapping[str, object]:
    """Return what of a patch a subresource takes: itself and the metadata, or all without one."""
    kept = {subresource, "metadata"}
    return {k: v for k, v in patch.items() if k in kept} if subresource else patch


def merged(target: object, patch: object) -> Any:  # noqa: ANN401 - any JSON
    """Return what a JSON merge patch (RFC 7386) makes of a value."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def strategic(target: object, patch: object, path: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - any JSON
    """Return what a strategic merge patch makes of a value at ``path`` of an object."""
    key = MERGE_KEYS.get(path)
    if key is not None and isinstance(patch, list):
        return _elements(target if isinstance(target, list) else [], patch, key)
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = strategic(result.get(name), value, (*path, name))
    return result


def _elements(old: list[Any], patch: list[Any], key: str) -> list[Any]:
    """Return a list with elements changed, added, and those removed that are marked so."""
    found = {element[key]: element for element in copy.deepcopy(old)}
    for change in patch:
        if change.get(DIRECTIVE) == "delete":
            found.pop(change[key], None)
        else:
            found[change[key]] = merged(found.get(change[key]), change)
    return list(found.values())
