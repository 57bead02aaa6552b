"""The page of a dcgm-exporter, reduced to what its GPU instances are doing.

Pure. dcgm-exporter does not escape label values, so each line is parsed for itself: one that is
broken is lost and counted, and the others stand. Values are not interpreted, only bounded.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from slicewatch.catalog.model import Limits


class Field(StrEnum):
    """The fields that DCGM's profiling module measures per GPU instance, each a ratio 0-1."""

    GRAPHICS_ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    SM = "DCGM_FI_PROF_SM_ACTIVE"
    TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
    DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"


# DCGM's blanks ("not found", "not supported", …) are numbers from 2147483632 upwards.
RATIO: Final = Limits(low=0, high=1)

_STARTS: Final = tuple(f"{field}{{" for field in Field)

InstanceId = tuple[str, int]
"""Uuid of the parent GPU, and the number of the GPU instance on it."""

Activity = Mapping[Field, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What one page says.

    Attributes:
        instances: per GPU instance and per profile that it is reported with, its activity.
        rejected: per field, how many values of instances are no ratio.
        broken: lines of these fields that are not valid exposition.
        of_dcgm: whether there is any series of DCGM at all.
        profiled: whether there is any of these fields, also of whole GPUs.
    """

    instances: Mapping[InstanceId, Mapping[str, Activity]]
    rejected: Mapping[Field, int]
    broken: int
    of_dcgm: bool
    profiled: bool


def read(text: str) -> Page:
    """Return what a page says; any text is a page, if an empty one."""
    instances: dict[InstanceId, dict[str, dict[Field, float]]] = {}
    rejected: Counter[Field] = Counter()
    broken = 0
    lines = text.split("\n")
    ours = [line for line in lines if line.startswith(_STARTS)]
    # Parsing is what costs, so lines of whole GPUs are left out before.
    for line in (line for line in ours if "GPU_I_ID=" in line):
        try:
            sample = _sample(line)
            instance = _instance(sample.labels)
        except ValueError:
            broken += 1
            continue
        field = Field(sample.name)
        if RATIO.hold(sample.value):
            profile = sample.labels.get("GPU_I_PROFILE", "")
            instances.setdefault(instance, {}).setdefault(profile, {})[field] = sample.value
        else:
            rejected[field] += 1
    return Page(
        instances=instances,
        rejected=rejected,
        broken=broken,
        of_dcgm=any(line.startswith("DCGM_FI_") for line in lines),
        profiled=bool(ours),
    )


def _sample(line: str) -> Sample:
    """Return the sample of a line; raise ``ValueError`` if it is none."""
    (family,) = text_string_to_metric_families(line)
    (sample,) = family.samples
    return sample


def _instance(labels: Mapping[str, str]) -> InstanceId:
    """Return whose sample it is; raise ``ValueError`` if it cannot be told."""
    # ``uuid`` is what dcgm-exporter writes when told to use its old names.
    uuid = labels.get("UUID") or labels.get("uuid")
    if not uuid:
        raise ValueError("no uuid")
    return uuid, int(labels.get("GPU_I_ID", ""))
