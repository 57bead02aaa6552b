"""``tests/golden/catalog.json``: what others rely on, so that a change of it shows in review.

Of a STABLE metric nothing goes away: the file is not written over such a change unless the
author says that the break is meant.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from slicewatch.catalog.model import Metric, Scope, Stability


class Promise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a metric promises to those who query it; the identity labels follow from ``scopes``."""

    type: str
    unit: str
    labels: tuple[str, ...]
    scopes: tuple[str, ...]
    stability: Stability


class ContractError(ValueError):
    """The golden file cannot be read, or a stable metric would break."""


Contract = Mapping[str, Promise]


def contract_of(metrics: Iterable[Metric[Any]]) -> Contract:
    """Return the promises of metrics by name, sorted."""
    promises = {metric.name: _promise(metric) for metric in metrics}
    return dict(sorted(promises.items()))


def _promise(metric: Metric[Any]) -> Promise:
    return Promise(
        type=str(metric.kind),
        unit=str(metric.unit),
        labels=tuple(map(str, metric.labels)),
        scopes=tuple(str(scope) for scope in Scope if scope in metric.scopes),
        stability=metric.stability,
    )


def encode(contract: Contract) -> str:
    """Return the contract as JSON with a line for each metric, which makes a diff readable."""
    lines = [
        f"  {msgspec.json.encode(name).decode()}: {msgspec.json.encode(promise).decode()}"
        for name, promise in contract.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def decode(text: str) -> Contract:
    """Return the contract of a text.

    Raises:
        ContractError: it is none.
    """
    try:
        return msgspec.json.decode(text, type=dict[str, Promise])
    except msgspec.DecodeError as error:
        raise ContractError(f"the golden contract cannot be read: {error}") from error


def breaks(before: Contract, after: Contract) -> list[str]:
    """Return what of the stable metrics of ``before`` no longer holds, one sentence each."""
    stable = {n: p for n, p in before.items() if p.stability is Stability.STABLE}
    found: list[str] = []
    for name, promise in stable.items():
        if name not in after:
            found.append(f"{name}: is gone")
        else:
            found += [f"{name}: {what}" for what in _changes(promise, after[name])]
    return found


def _changes(old: Promise, new: Promise) -> Iterable[str]:
    if new.type != old.type:
        yield f"was a {old.type}, is a {new.type}"
    if new.unit != old.unit:
        yield f"its unit was {old.unit or 'none'}, is {new.unit or 'none'}"
    for label in old.labels:
        if label not in new.labels:
            yield f"lost its label {label}"
    for scope in old.scopes:
        if scope not in new.scopes:
            yield f"is no longer there for {scope}"
    if new.stability is not Stability.STABLE:
        yield f"was stable, is {new.stability}"
