"""Whether the GPUs are seen at all: exporters, their drivers and what they are told."""

from typing import Final

from alerts.model import Alert, Group, Severity, Source
from alerts.series import EXPORTER_JOB, PER_CLUSTER, PER_GPU, PER_NODE
from alerts.thresholds import (
    FAILING_PROBE_RATIO,
    REJECTED_PER_HOUR,
    STALE_SECONDS,
    TENANTS_SECONDS,
)

_EXPORTER: Final = frozenset({Source.EXPORTER})
# Without these there is neither scaling nor sharing; under MIG the GPU itself has them not.
_CORE: Final = "gpu_utilization|gpu_memory_used_bytes"
_RELEASED: Final = f"unless on ({PER_NODE}) (slicewatch_released == 1)"

GROUP: Final = Group(
    name="monitoring",
    title="Monitoring",
    intent="GPUs are not seen, not lately, or not in full.",
    rules=(
        Alert(
            name="SlicewatchExportersAbsent",
            expr=f"absent(up{{{EXPORTER_JOB}}} == 1)",
            hold="10m",
            severity=Severity.CRITICAL,
            summary="No exporter answers: nothing is known of any GPU.",
            description="Prometheus reaches no target of the exporters' job. All alerts on GPUs are"
            " silent until it does.",
            sources=frozenset({Source.PROMETHEUS}),
        ),
        Alert(
            name="SlicewatchExporterDown",
            expr=f"""
            max by ({PER_NODE}, instance) (up{{{EXPORTER_JOB}}}) == 0
            and on ({PER_CLUSTER}) (up{{{EXPORTER_JOB}}} == 1)
            """,
            hold="10m",
            severity=Severity.WARNING,
            summary="The exporter of {{ $labels.node }} does not answer.",
            description="Nothing is known of the GPUs behind {{ $labels.instance }}. Its pod is"
            " down, or its driver hangs at the start.",
            sources=frozenset({Source.PROMETHEUS}),
        ),
        Alert(
            name="SlicewatchExporterMissing",
            expr=f"""
            max by ({PER_NODE}) (gpu_cluster_node_schedulable)
            unless on ({PER_NODE}) (gpu_up or gpu_info or slicewatch_driver_up)
            """,
            hold="30m",
            severity=Severity.WARNING,
            summary="GPU node {{ $labels.node }} has no exporter that Prometheus knows.",
            description="Kubernetes offers GPUs there. The DaemonSet does not tolerate a taint, or"
            " the node lacks the label that it asks for.",
            sources=frozenset({Source.ADAPTER, Source.EXPORTER}),
        ),
        Alert(
            name="SlicewatchExporterStale",
            expr=f"max by ({PER_NODE}) (slicewatch_snapshot_age_seconds) > {STALE_SECONDS}",
            hold="5m",
            severity=Severity.WARNING,
            summary="The exporter of {{ $labels.node }} serves old values.",
            description="They are {{ $value | humanizeDuration }} old: its loop stands still. The"
            " adapter no longer uses them.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchGPUUnread",
            expr=f"""
            max by ({PER_GPU}) (gpu_reading_age_seconds) > {STALE_SECONDS}
            {_RELEASED}
            """,
            hold="5m",
            severity=Severity.WARNING,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} has not been read for"
            " {{ $value | humanizeDuration }}.",
            description="A call of the driver hangs, or takes that long. The other GPUs of the node"
            " are read all the same.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchDriverDown",
            expr=f"""
            max by ({PER_NODE}, reason) (slicewatch_driver_up == 0)
            {_RELEASED}
            """,
            hold="10m",
            severity=Severity.CRITICAL,
            summary="The NVIDIA driver of {{ $labels.node }} cannot be used.",
            description="The reason is {{ $labels.reason }}. No program can use a GPU of the node.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchTenantsUnknown",
            expr=f"max by ({PER_NODE}) (slicewatch_tenants_age_seconds) > {TENANTS_SECONDS}",
            hold="5m",
            severity=Severity.WARNING,
            summary="The kubelet of {{ $labels.node }} does not say who holds its GPUs.",
            description="It has not for {{ $value | humanizeDuration }}. Values of pods on the node"
            " are missing.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchEventsUnheard",
            expr=f"""
            max by ({PER_NODE}, reason) (slicewatch_events_listening == 0)
            {_RELEASED}
            """,
            hold="15m",
            severity=Severity.INFO,
            summary="Xids of {{ $labels.node }} are not heard.",
            description="The driver reports no events to the exporter: {{ $labels.reason }}. Other"
            " checks see most faults; Xids are missing.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchMetricUnsupported",
            expr=f"""
            max by ({PER_GPU}, gpu_instance, metric, reason)
              (gpu_metric_supported{{metric=~"{_CORE}",reason!="mig_enabled"}} == 0)
            """,
            hold="1h",
            severity=Severity.INFO,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} cannot report {{ $labels.metric }}.",
            description="The reason is {{ $labels.reason }}. Pods on it cannot be scaled by that"
            " metric.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchReadingsRejected",
            expr=f"""
            sum by ({PER_NODE}, metric) (increase(slicewatch_rejected_readings_total[1h]))
            > {REJECTED_PER_HOUR}
            """,
            hold="30m",
            severity=Severity.INFO,
            summary="The driver of {{ $labels.node }} gives impossible values of"
            " {{ $labels.metric }}.",
            description="{{ $value | humanize }} in an hour were not published. A driver has a"
            " fault there; update it, and report it with the exporter's log.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchProbeFailing",
            expr=f"""
            max by ({PER_NODE}, probe) (avg_over_time(slicewatch_probe_success[15m]))
            < {FAILING_PROBE_RATIO}
            """,
            hold="15m",
            severity=Severity.INFO,
            summary="Reads of {{ $labels.probe }} fail on {{ $labels.node }}.",
            description="Its metrics are missing there. The exporter's log has the driver's error.",
            sources=_EXPORTER,
        ),
        Alert(
            name="SlicewatchConfigReloadFailed",
            expr="""
            slicewatch_config_last_reload_successful == 0
            or slicewatch_adapter_config_last_reload_successful == 0
            """,
            hold="5m",
            severity=Severity.WARNING,
            summary="{{ $labels.instance }} goes on with an older configuration.",
            description="A file that it was given is not valid, so that what was valid last is used"
            " still. Its log says what is wrong, and where.",
            sources=frozenset({Source.EXPORTER, Source.ADAPTER}),
        ),
    ),
)
