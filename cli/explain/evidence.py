"""Everything that one explanation is made of, read in one go."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import msgspec

from advisor.autoscaler.metrics import Situation
from cli.explain.asking import Asked, ask
from cli.explain.cluster import (
    ApiRegistration,
    CannotExplainError,
    Reader,
    Right,
    needed,
    pods,
    registration,
    resource_of,
)
from slicewatch.kube.autoscaling import (
    HORIZONTAL_POD_AUTOSCALER,
    HorizontalPodAutoscaler,
    Scale,
    ScaledPod,
)
from slicewatch.kube.errors import ForbiddenError, KubeError, NotFoundError
from slicewatch.suggestion import did_you_mean


class CannotScaleError(Exception):
    """The autoscaler cannot work before it gets to any metric; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """An autoscaler and all around it.

    Attributes:
        pods: that the scale's selector matches.
        asked: one for each metric.
        elsewhere: other namespaces with pods that the selector matches, looked up only if there
            are none here.
        servers: who serves each API group, where that can be seen.
    """

    autoscaler: HorizontalPodAutoscaler
    scale: Scale
    pods: tuple[ScaledPod, ...]
    asked: tuple[Asked, ...]
    elsewhere: tuple[str, ...]
    servers: Mapping[str, ApiRegistration]
    now: datetime

    def situation(self) -> Situation:
        """Return what the controller sees of it."""
        return Situation(
            autoscaler=self.autoscaler,
            scale=self.scale,
            pods=self.pods,
            readings=[one.readings for one in self.asked],
            now=self.now,
        )


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Object(msgspec.Struct, frozen=True):
    metadata: _Named


class _Objects(msgspec.Struct, frozen=True):
    items: tuple[_Object, ...] = ()


async def collect(reader: Reader, namespace: str, name: str, now: datetime) -> Evidence:
    """Read an autoscaler and all around it.

    Raises:
        CannotExplainError: something that is needed cannot be read.
        CannotScaleError: what it scales does not exist, or cannot be scaled.
    """
    autoscaler = await _autoscaler(reader, namespace, name)
    scale = await _scale(reader, autoscaler)
    selector = scale.status.selector
    if not selector:
        raise CannotScaleError(
            f"the scale of {_target(autoscaler)} has no status.selector, so its pods cannot be "
            "found; set labelSelectorPath in the CustomResourceDefinition's scale subresource"
        )
    found = await _pods(reader, selector, namespace)
    asked = [await ask(reader, spec, namespace, selector) for spec in autoscaler.spec.metrics]
    places = {(a.address.group, a.address.version) for a in asked if a.address.version}
    seen = {group: await registration(reader, group, version) for group, version in places}
    return Evidence(
        autoscaler=autoscaler,
        scale=scale,
        pods=tuple(found),
        asked=tuple(asked),
        elsewhere=() if found else await _elsewhere(reader, selector),
        servers={group: one for group, one in seen.items() if one is not None},
        now=now,
    )


async def _autoscaler(reader: Reader, namespace: str, name: str) -> HorizontalPodAutoscaler:
    kind = HORIZONTAL_POD_AUTOSCALER
    right = Right(group=kind.group, resource=kind.plural, verb="get")
    path = kind.path(quote(namespace), quote(name))
    try:
        return await needed(reader, path, kind.type, right, f"the HPA {namespace}/{name}")
    except NotFoundError as error:
        known = await _known(reader, kind.path(quote(namespace)))
        there = f"there are {', '.join(known)}" if known else "there is none at all"
        raise CannotExplainError(
            f"there is no HPA {name} in namespace {namespace}; {there}{did_you_mean(name, known)}"
        ) from error


async def _known(reader: Reader, path: str) -> list[str]:
    try:
        return sorted(one.metadata.name for one in (await reader.read(path, _Objects)).items)
    except KubeError:
        return []


def _target(autoscaler: HorizontalPodAutoscaler) -> str:
    target = autoscaler.spec.scale_target_ref
    return f"{target.kind} {target.name}"


async def _scale(reader: Reader, autoscaler: HorizontalPodAutoscaler) -> Scale:
    target, namespace = autoscaler.spec.scale_target_ref, autoscaler.metadata.namespace
    resource = await resource_of(reader, target)
    if resource is None:
        raise CannotScaleError(
            f"the cluster serves no {target.kind} of {target.api_version or 'v1'}; correct "
            "spec.scaleTargetRef"
        )
    path = f"{resource.root}/namespaces/{quote(namespace)}/{resource.plural}/{quote(target.name)}"
    right = Right(group=resource.group, resource=f"{resource.plural}/scale", verb="get")
    try:
        return await needed(reader, f"{path}/scale", Scale, right, f"the scale of {target.name}")
    except NotFoundError as error:
        raise CannotScaleError(
            f"{target.kind} {target.name} does not exist in namespace {namespace}, or cannot be "
            "scaled; an HPA scales only what is in its own namespace"
        ) from error


async def _pods(reader: Reader, selector: str, namespace: str) -> list[ScaledPod]:
    right = Right(group="", resource="pods", verb="list")
    try:
        return await pods(reader, selector, namespace)
    except ForbiddenError as error:
        text = f"you may not list pods: add to your Role {right.rule()} ({error.said or error})"
        raise CannotExplainError(text) from error
    except KubeError as error:
        raise CannotExplainError(f"cannot list the pods: {error}") from error


async def _elsewhere(reader: Reader, selector: str) -> tuple[str, ...]:
    try:
        found = await pods(reader, selector)
    except KubeError:
        return ()
    return tuple(sorted({pod.metadata.namespace for pod in found}))
