"""The page of a dcgm-exporter, reduced to how busy its GPU instances are.

Pure. dcgm-exporter does not escape label values, so each line is parsed for itself: one that is
broken is lost and counted, and the others stand. Values are not interpreted, only bounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from slicewatch.catalog.model import Limits

# What DCGM's profiling module measures per GPU instance: the part of the time in which its graphics
# and compute engines had work.
FIELD: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
# DCGM's blanks ("not found", "not supported", …) are numbers from 2147483632 upwards.
RATIO: Final = Limits(low=0, high=1)

InstanceId = tuple[str, int]
"""Uuid of the parent GPU, and the number of the GPU instance on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What one page says.

    Attributes:
        instances: per GPU instance and per profile that it is reported with, how busy it is, 0 to
            1; None for a value that is no ratio.
        rejected: how many values are no ratio.
        broken: lines of the field that are not valid exposition.
        of_dcgm: whether there is any series of DCGM at all.
        profiled: whether there is the field, also of whole GPUs.
    """

    instances: Mapping[InstanceId, Mapping[str, float | None]]
    rejected: int
    broken: int
    of_dcgm: bool
    profiled: bool


def read(text: str) -> Page:
    """Return what a page says; any text is a page, if an empty one."""
    instances: dict[InstanceId, dict[str, float | None]] = {}
    rejected = broken = 0
    lines = text.split("\n")
    ours = [line for line in lines if line.startswith(f"{FIELD}{{")]
    # Parsing is what costs, so lines of whole GPUs are left out before.
    for line in (line for line in ours if "GPU_I_ID=" in line):
        try:
            sample = _sample(line)
            instance = _instance(sample.labels)
        except ValueError:
            broken += 1
            continue
        by_profile, profile = (
            instances.setdefault(instance, {}),
            sample.labels.get("GPU_I_PROFILE", ""),
        )
        if RATIO.hold(sample.value):
            by_profile[profile] = sample.value
        else:
            by_profile.setdefault(profile, None)
            rejected += 1
    return Page(
        instances=instances,
        rejected=rejected,
        broken=broken,
        of_dcgm=any(line.startswith("DCGM_FI_") for line in lines),
        profiled=bool(ours),
    )


def _sample(line: str) -> Sample:
    """Return the sample of a line; raise ``ValueError`` if it is none."""
    try:
        (family,) = text_string_to_metric_families(line)
    except LookupError as error:  # the parser's own, for some lines that are cut off or mangled
        raise ValueError(f"no sample: {line!r}") from error
    (sample,) = family.samples
    if sample.name != FIELD:
        raise ValueError(f"another name: {line!r}")
    return sample


def _instance(labels: Mapping[str, str]) -> InstanceId:
    """Return whose sample it is; raise ``ValueError`` if it cannot be told."""
    # ``uuid`` is what dcgm-exporter writes when told to use its old names.
    uuid = labels.get("UUID") or labels.get("uuid")
    if not uuid:
        raise ValueError("no uuid")
    return uuid, int(labels.get("GPU_I_ID", ""))
