"""Exporter and adapter: how our own processes do."""

from typing import Final

from alerts.series import ADAPTER_JOB, EXPORTER_JOB, HEALTH_JOB
from alerts.thresholds import STALE_SECONDS
from dashboards import units
from dashboards.model import Dashboard, Form, Limit, Panel, Query, Row
from dashboards.variables import CLUSTER, NODE, OF_CLUSTER, OF_NODE

_JOBS: Final = (
    ("exporter", EXPORTER_JOB),
    ("adapter", ADAPTER_JOB),
    ("health", HEALTH_JOB),
)

DASHBOARD: Final = Dashboard(
    name="internals",
    title="Slicewatch / Exporter and adapter",
    intent="Whether our own processes run, keep their rhythm, and what they cost.",
    needs=("exporter", "adapter", "health"),
    variables=(CLUSTER, NODE),
    rows=(
        Row(
            title="Processes",
            panels=(
                Panel(
                    title="Up",
                    reading="Targets that answer, by job.",
                    queries=tuple(
                        Query(expr=f"sum(up{{{job}}})", legend=name) for name, job in _JOBS
                    ),
                    unit=units.COUNT, form=Form.NUMBER, width=8, height=6,
                ),
                Panel(
                    title="CPU",
                    reading="Cores, of the process that takes most. An exporter takes a few percent"
                    " of one; an adapter up to one at 5,000 nodes.",
                    queries=tuple(
                        Query(
                            expr=f"max(rate(process_cpu_seconds_total{{{job}}}[$__rate_interval]))",
                            legend=name,
                        )
                        for name, job in _JOBS
                    ),
                    unit=units.CORES, width=8, height=6, least=0,
                ),
                Panel(
                    title="Memory",
                    reading="Resident, of the largest process. It should not grow for days.",
                    queries=tuple(
                        Query(expr=f"max(process_resident_memory_bytes{{{job}}})", legend=name)
                        for name, job in _JOBS
                    ),
                    unit="bytes", width=8, height=6, least=0,
                ),
            ),
        ),
        Row(
            title="Exporters",
            panels=(
                Panel(
                    title="Duration of a tick, p99",
                    reading="From its start until the snapshot is published. Driver calls are most of"
                    " it; near one second ticks are left out.",
                    queries=(
                        Query(
                            expr="histogram_quantile(0.99, sum by (le)"
                            " (rate(slicewatch_tick_duration_seconds_bucket"
                            f"{{{OF_NODE}}}[$__rate_interval])))",
                            legend="p99",
                        ),
                    ),
                    unit=units.of("slicewatch_tick_duration_seconds"), width=8, least=0,
                ),
                Panel(
                    title="Age of snapshots",
                    reading="Of the nodes where it is oldest; one second is normal.",
                    queries=(
                        Query(
                            expr="topk(5, max by (node, instance)"
                            f" (slicewatch_snapshot_age_seconds{{{OF_NODE}}}))",
                            legend="{{node}} {{instance}}",
                        ),
                    ),
                    unit=units.of("slicewatch_snapshot_age_seconds"), width=8, least=0,
                    limits=(Limit(value=STALE_SECONDS, colour="red"),),
                ),
                Panel(
                    title="Time in reads, by probe",
                    reading="Seconds per second over all nodes shown: what the driver's answers"
                    " cost.",
                    queries=(
                        Query(
                            expr="topk(8, sum by (probe)"
                            " (rate(slicewatch_probe_duration_seconds_total"
                            f"{{{OF_NODE}}}[$__rate_interval])))",
                            legend="{{probe}}",
                        ),
                    ),
                    unit=units.rate_of("slicewatch_probe_duration_seconds_total"), width=8,
                    least=0,
                ),
                Panel(
                    title="Probes that fail",
                    reading="Reads that failed on some GPU in the last tick, by nodes.",
                    queries=(
                        Query(
                            expr=f"count by (probe) (slicewatch_probe_success{{{OF_NODE}}} == 0)",
                            legend="{{probe}}",
                        ),
                    ),
                    unit=units.COUNT, least=0, empty="None fails",
                ),
                Panel(
                    title="Readings that cannot be true",
                    reading="Rejected instead of published, by metric: a fault of a driver.",
                    queries=(
                        Query(
                            expr="sum by (metric) (rate(slicewatch_rejected_readings_total"
                            f"{{{OF_NODE}}}[$__rate_interval]))",
                            legend="{{metric}}",
                        ),
                    ),
                    unit=units.rate_of("slicewatch_rejected_readings_total"), least=0,
                    empty="None was rejected",
                ),
            ),
        ),
        Row(
            title="Adapter",
            panels=(
                Panel(
                    title="Exporters that it hears",
                    reading="Open streams, and those that are wanted.",
                    queries=(
                        Query(
                            expr=f"sum(slicewatch_adapter_exporter_connected{{{OF_CLUSTER}}})",
                            legend="connected",
                        ),
                        Query(
                            expr=f"count(slicewatch_adapter_exporter_connected{{{OF_CLUSTER}}})",
                            legend="wanted",
                        ),
                    ),
                    unit=units.COUNT, width=8, least=0,
                ),
                Panel(
                    title="Oldest values",
                    reading="Of the nodes where they are oldest. Beyond `max_age_seconds` they are"
                    " not served.",
                    queries=(
                        Query(
                            expr="topk(5, max by (node)"
                            f" (slicewatch_adapter_sample_age_seconds{{{OF_NODE}}}))",
                            legend="{{node}}",
                        ),
                    ),
                    unit=units.of("slicewatch_adapter_sample_age_seconds"), width=8, least=0,
                ),
                Panel(
                    title="Streams that ended, by reason",
                    reading="Restarts of exporters are normal; a reason that goes on is not.",
                    queries=(
                        Query(
                            expr="sum by (reason) (rate(slicewatch_adapter_stream_faults_total"
                            f"{{{OF_CLUSTER}}}[$__rate_interval]))",
                            legend="{{reason}}",
                        ),
                    ),
                    unit=units.rate_of("slicewatch_adapter_stream_faults_total"), width=8, least=0,
                    empty="None ended",
                ),
                Panel(
                    title="Backends of rules, time to answer, p99",
                    reading="Of Prometheus and the like, where rules are configured.",
                    queries=(
                        Query(
                            expr="histogram_quantile(0.99, sum by (backend, le)"
                            " (rate(slicewatch_adapter_backend_request_duration_seconds_bucket"
                            f"{{{OF_CLUSTER}}}[$__rate_interval])))",
                            legend="{{backend}}",
                        ),
                    ),
                    unit=units.SECONDS, width=8, least=0, empty="No rules are configured",
                ),
                Panel(
                    title="Rules that fail",
                    reading="0 while the last query of the rule brought no result.",
                    queries=(
                        Query(
                            expr=f"min by (rule) (slicewatch_adapter_rule_success{{{OF_CLUSTER}}})",
                            legend="{{rule}}",
                        ),
                    ),
                    unit=units.STATE, form=Form.STATES, width=8, empty="No rules are configured",
                ),
                Panel(
                    title="Configuration and certificates",
                    reading="Days until each certificate ends; and 0 where a changed file was not"
                    " valid.",
                    queries=(
                        Query(
                            expr="(min by (object)"
                            " (slicewatch_adapter_certificate_expiry_timestamp_seconds"
                            f"{{{OF_CLUSTER}}}) - time()) / 86400",
                            legend="{{object}}: days",
                        ),
                        Query(
                            expr="min(slicewatch_adapter_config_last_reload_successful"
                            f"{{{OF_CLUSTER}}})",
                            legend="adapter: files valid",
                        ),
                        Query(
                            expr=f"min(slicewatch_config_last_reload_successful{{{OF_NODE}}})",
                            legend="exporters: files valid",
                        ),
                    ),
                    unit=units.COUNT, form=Form.NUMBER, width=8,
                ),
            ),
        ),
    ),
)  # fmt: skip
