"""What our processes report about themselves."""

from typing import Final

from slicewatch.catalog.model import Kind, Label, Own, Unit

EXPORTER: Final = Own(name="exporter")
ADAPTER: Final = Own(name="adapter")

TICK_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
REQUEST_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0)

TICK_SECONDS: Final = EXPORTER.metric(
    Kind.HISTOGRAM,
    "slicewatch_tick_duration_seconds",
    help="Time from the start of a tick until its snapshot was published.",
    unit=Unit.SECONDS,
    buckets=TICK_BUCKETS,
)
PROBE_SECONDS: Final = EXPORTER.metric(
    Kind.COUNTER,
    "slicewatch_probe_duration_seconds_total",
    help="Time spent in reads of the probe, over all devices.",
    unit=Unit.SECONDS,
    labels=(Label.PROBE,),
)
PROBE_SUCCESS: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_probe_success",
    help="1 if no read of the probe failed on any device in the last tick.",
    labels=(Label.PROBE,),
)
SNAPSHOT_AGE: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_snapshot_age_seconds",
    help="Age of the snapshot that is being served.",
    unit=Unit.SECONDS,
)
REJECTED: Final = EXPORTER.metric(
    Kind.COUNTER,
    "slicewatch_rejected_readings_total",
    help="Readings that were not published because their values were impossible.",
    labels=(Label.METRIC,),
)
DRIVER_UP: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_driver_up",
    help="1 while NVML is initialised, or 0 with the reason.",
    labels=(Label.REASON,),
)
DRIVER_INFO: Final = EXPORTER.metric(
    Kind.INFO,
    "slicewatch_driver_info",
    help="Versions of the driver, of NVML and of CUDA, while NVML is initialised.",
    labels=(Label.DRIVER, Label.NVML, Label.CUDA),
)
RELEASED: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_released",
    help="1 while NVML is stopped on request, so that GPUs can be reset; values are then stale.",
    labels=(Label.REASON,),
)
TENANTS_AGE: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_tenants_age_seconds",
    help="Time since the kubelet last listed device allocations.",
    unit=Unit.SECONDS,
)
UNRESOLVED: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_unresolved_device_ids",
    help="Device ids allocated by the kubelet that match no device on this node.",
)
CONFIG_VALID: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_config_last_reload_successful",
    help="1 if the files that take effect without a restart were all valid when last read.",
)
CONFIG_TIME: Final = EXPORTER.metric(
    Kind.GAUGE,
    "slicewatch_config_last_reload_success_timestamp_seconds",
    help="When such a file last took effect, or was found valid again.",
    unit=Unit.SECONDS,
)
REQUEST_SECONDS: Final = ADAPTER.metric(
    Kind.HISTOGRAM,
    "slicewatch_adapter_request_duration_seconds",
    help="Time taken to answer a request to the metrics APIs.",
    unit=Unit.SECONDS,
    labels=(Label.API, Label.CODE),
    buckets=REQUEST_BUCKETS,
)
EXPORTER_CONNECTED: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_exporter_connected",
    help="1 while the stream from the node's exporter is open.",
    labels=(Label.NODE,),
)
EXPORTER_AGE: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_exporter_age_seconds",
    help="Time since the last snapshot from the node's exporter arrived.",
    unit=Unit.SECONDS,
    labels=(Label.NODE,),
)
REJECTED_LINES: Final = ADAPTER.metric(
    Kind.COUNTER,
    "slicewatch_adapter_rejected_lines_total",
    help="Lines from the node's exporter that were not valid frames and were dropped.",
    labels=(Label.NODE,),
)
PODS_SYNCED: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_pods_synced",
    help="1 while the watch on pods is complete and open.",
)

METRICS: Final = (
    TICK_SECONDS, PROBE_SECONDS, PROBE_SUCCESS, SNAPSHOT_AGE, REJECTED, DRIVER_UP, DRIVER_INFO, RELEASED,
    TENANTS_AGE, UNRESOLVED, CONFIG_VALID, CONFIG_TIME, REQUEST_SECONDS, EXPORTER_CONNECTED, EXPORTER_AGE,
    REJECTED_LINES, PODS_SYNCED,
)  # fmt: skip
