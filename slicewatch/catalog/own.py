"""What our processes report about themselves."""

from itertools import accumulate, repeat
from operator import mul
from typing import Final

from slicewatch.catalog.model import Kind, Label, Own, Unit

EXPORTER: Final = Own(name="exporter")
ADAPTER: Final = Own(name="adapter")

TICK_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
# Those of every server that is built on custom-metrics-apiserver: 20 from 1 s, each 1.364 times
# the one before.
FRESHNESS_BUCKETS: Final = tuple(accumulate(repeat(1.364, 19), mul, initial=1.0))
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
FRESHNESS_SECONDS: Final = ADAPTER.metric(
    Kind.HISTOGRAM,
    "metrics_apiserver_metric_freshness_seconds",
    help="Age of the oldest value of an answer, under the name that custom metrics servers share.",
    unit=Unit.SECONDS,
    labels=(Label.GROUP,),
    buckets=FRESHNESS_BUCKETS,
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
SAMPLE_AGE: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_sample_age_seconds",
    help="Time since the device of the node that was read longest ago was read.",
    unit=Unit.SECONDS,
    labels=(Label.NODE,),
)
STREAM_FAULTS: Final = ADAPTER.metric(
    Kind.COUNTER,
    "slicewatch_adapter_stream_faults_total",
    help="Streams from exporters that could not be opened, or ended.",
    labels=(Label.REASON,),
)
DROPPED_VALUES: Final = ADAPTER.metric(
    Kind.COUNTER,
    "slicewatch_adapter_dropped_values_total",
    help="Objects that were asked for and had no value in the answer.",
    labels=(Label.REASON,),
)
REFUSED_HANDSHAKES: Final = ADAPTER.metric(
    Kind.COUNTER,
    "slicewatch_adapter_refused_handshakes_total",
    help="TLS handshakes of the port of the metrics APIs that failed.",
    labels=(Label.REASON,),
)
CERTIFICATE_ENDS: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_certificate_expiry_timestamp_seconds",
    help="When the serving certificate ends, or the last of the front proxy's authorities.",
    unit=Unit.SECONDS,
    labels=(Label.OBJECT,),
)
REGISTERED: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_api_service_registered",
    help="1 if the APIService sends requests to this adapter, or 0 with the reason.",
    labels=(Label.API, Label.REASON),
)
RELOAD_VALID: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_config_last_reload_successful",
    help="1 if the files that take effect without a restart were all valid when last read.",
)
RELOAD_TIME: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_config_last_reload_success_timestamp_seconds",
    help="When such a file last took effect, or was found valid again.",
    unit=Unit.SECONDS,
)
WORKLOAD_SCRAPE_SECONDS: Final = ADAPTER.metric(
    Kind.HISTOGRAM,
    "slicewatch_adapter_workload_scrape_duration_seconds",
    help="Time taken to scrape the page of a pod, including those that could not be read.",
    unit=Unit.SECONDS,
    buckets=REQUEST_BUCKETS,
)
WORKLOAD_FAILURES: Final = ADAPTER.metric(
    Kind.COUNTER,
    "slicewatch_adapter_workload_scrape_failures_total",
    help="Scrapes of pods that failed, by reason.",
    labels=(Label.REASON,),
)
WORKLOAD_TARGETS: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_workload_targets",
    help="Pods that are scraped, since somebody asked for their own metrics lately.",
)

BACKEND_SECONDS: Final = ADAPTER.metric(
    Kind.HISTOGRAM,
    "slicewatch_adapter_backend_request_duration_seconds",
    help="Time taken by requests to a backend of rules, including those that failed.",
    unit=Unit.SECONDS,
    labels=(Label.BACKEND,),
    buckets=REQUEST_BUCKETS,
)
BACKEND_FAULTS: Final = ADAPTER.metric(
    Kind.COUNTER,
    "slicewatch_adapter_backend_faults_total",
    help="Requests to a backend of rules that brought no result, by reason.",
    labels=(Label.BACKEND, Label.REASON),
)
RULE_SUCCESS: Final = ADAPTER.metric(
    Kind.GAUGE,
    "slicewatch_adapter_rule_success",
    help="1 if the rule's last query brought a result; 0 if not, or if it cannot be used at all.",
    labels=(Label.RULE,),
)
DROPPED_SAMPLES: Final = ADAPTER.metric(
    Kind.COUNTER,
    "slicewatch_adapter_dropped_samples_total",
    help="Values of backends that were asked for and not served, by reason.",
    labels=(Label.RULE, Label.REASON),
)

METRICS: Final = (
    TICK_SECONDS, PROBE_SECONDS, PROBE_SUCCESS, SNAPSHOT_AGE, REJECTED, DRIVER_UP, DRIVER_INFO, RELEASED,
    TENANTS_AGE, UNRESOLVED, CONFIG_VALID, CONFIG_TIME, REQUEST_SECONDS, FRESHNESS_SECONDS, EXPORTER_CONNECTED, EXPORTER_AGE,
    REJECTED_LINES, PODS_SYNCED, SAMPLE_AGE, STREAM_FAULTS, DROPPED_VALUES, REFUSED_HANDSHAKES,
    CERTIFICATE_ENDS, REGISTERED, RELOAD_VALID, RELOAD_TIME,
    WORKLOAD_SCRAPE_SECONDS, WORKLOAD_FAILURES, WORKLOAD_TARGETS,
    BACKEND_SECONDS, BACKEND_FAULTS, RULE_SUCCESS, DROPPED_SAMPLES,
)  # fmt: skip
