"""Autoscaling: what HPAs see, want and get, and how the adapter answers them."""

from typing import Final

from alerts.series import OUR_METRICS
from alerts.thresholds import ERROR_RATIO
from dashboards import units
from dashboards.model import Dashboard, Form, Limit, Panel, Query, Row
from dashboards.variables import CLUSTER, HPA_NAMESPACE, OF_CLUSTER, OF_NAMESPACE

_HPA: Final = "{{namespace}}/{{horizontalpodautoscaler}}"
_KSM: Final = "No data: kube-state-metrics is not scraped, or no HPA is on GPU metrics"
_OURS: Final = (
    " and on (cluster, namespace, horizontalpodautoscaler)"
    f" kube_horizontalpodautoscaler_spec_target_metric{{{OUR_METRICS}}}"
)


def _of_hpa(what: str) -> str:
    return f"kube_horizontalpodautoscaler_{what}{{{OF_NAMESPACE}}}{_OURS}"


DASHBOARD: Final = Dashboard(
    name="autoscaling",
    title="Slicewatch / Autoscaling",
    intent="What HPAs on GPU metrics see and want, and whether the metrics APIs answer them.",
    needs=("adapter", "exporter", "kube-state-metrics"),
    variables=(CLUSTER, HPA_NAMESPACE),
    rows=(
        Row(
            title="HPAs",
            panels=(
                Panel(
                    title="Replicas",
                    reading="What each HPA on a GPU metric has. `slicewatch explain hpa` says why.",
                    queries=(Query(expr=_of_hpa("status_current_replicas"), legend=_HPA),),
                    unit=units.COUNT, least=0, empty=_KSM,
                ),
                Panel(
                    title="Wanted of the maximum",
                    reading="At 1 it may want more than it can have.",
                    queries=(
                        Query(
                            expr=f"({_of_hpa('status_desired_replicas')})"
                            " / on (cluster, namespace, horizontalpodautoscaler)"
                            " kube_horizontalpodautoscaler_spec_max_replicas",
                            legend=_HPA,
                        ),
                    ),
                    unit=units.RATIO, least=0, most=1, empty=_KSM,
                    limits=(Limit(value=1, colour="orange"),),
                ),
                Panel(
                    title="Targets",
                    reading="What the metric is held against, as the HPA has it: a mean per pod, or a"
                    " value. Of ratios and percentages the number of the metric itself.",
                    queries=(
                        Query(
                            expr="max by (namespace, horizontalpodautoscaler, metric_name)"
                            " (kube_horizontalpodautoscaler_spec_target_metric"
                            f"{{{OF_NAMESPACE},{OUR_METRICS}}})",
                            legend="Target",
                        ),
                        Query(
                            expr="max by (namespace, horizontalpodautoscaler)"
                            f" ({_of_hpa('spec_min_replicas')})",
                            legend="At least",
                        ),
                        Query(
                            expr="max by (namespace, horizontalpodautoscaler)"
                            f" ({_of_hpa('spec_max_replicas')})",
                            legend="At most",
                        ),
                    ),
                    unit=units.COUNT, form=Form.TABLE, empty=_KSM,
                ),
                Panel(
                    title="Utilization of the namespace's GPUs",
                    reading="Of devices that pods of the namespace hold, as devices: an HPA gets a"
                    " pod's share of what it could have, see the docs on pod values.",
                    queries=(
                        Query(
                            expr="avg by (namespace) (max by (uuid, namespace) (gpu_tenant_info"
                            f'{{{OF_NAMESPACE},source="kubelet"}})'
                            " * on (uuid) group_left () max by (uuid) (gpu_utilization"
                            f"{{{OF_CLUSTER}}}))",
                            legend="{{namespace}}",
                        ),
                    ),
                    unit=units.of("gpu_utilization"), least=0, most=100,
                ),
                Panel(
                    title="Blind HPAs",
                    reading="1 while an HPA cannot compute what it needs: it keeps its replicas.",
                    queries=(
                        Query(
                            expr="kube_horizontalpodautoscaler_status_condition"
                            f'{{{OF_NAMESPACE},condition="ScalingActive",status="false"}}{_OURS}',
                            legend=_HPA,
                        ),
                    ),
                    unit=units.STATE, form=Form.STATES, width=24, height=6, empty=_KSM,
                    limits=(Limit(value=1, colour="red"),),
                ),
            ),
        ),
        Row(
            title="Answers of the metrics APIs",
            panels=(
                Panel(
                    title="Requests by code",
                    reading="Each HPA asks once in 15 s. 404 is a metric, or a pod, that there is"
                    " not; 500 and above are errors.",
                    queries=(
                        Query(
                            expr="sum by (api, code)"
                            " (rate(slicewatch_adapter_request_duration_seconds_count"
                            f"{{{OF_CLUSTER}}}[$__rate_interval]))",
                            legend="{{api}} {{code}}",
                        ),
                    ),
                    unit=units.PER_SECOND, width=8, least=0,
                ),
                Panel(
                    title="Errors",
                    reading="Share of answers with a code of 500 and above.",
                    queries=(
                        Query(
                            expr="sum(rate(slicewatch_adapter_request_duration_seconds_count"
                            f'{{{OF_CLUSTER},code=~"5.."}}[$__rate_interval]))'
                            " / sum(rate(slicewatch_adapter_request_duration_seconds_count"
                            f"{{{OF_CLUSTER}}}[$__rate_interval]))",
                            legend="errors",
                        ),
                    ),
                    unit=units.RATIO, width=8, least=0, empty="No errors",
                    limits=(Limit(value=ERROR_RATIO, colour="red"),),
                ),
                Panel(
                    title="Time to answer, p99",
                    reading="Values are there already: milliseconds. With rules on a backend as long"
                    " as that takes.",
                    queries=(
                        Query(
                            expr="histogram_quantile(0.99, sum by (api, le)"
                            " (rate(slicewatch_adapter_request_duration_seconds_bucket"
                            f"{{{OF_CLUSTER}}}[$__rate_interval])))",
                            legend="{{api}}",
                        ),
                    ),
                    unit=units.SECONDS, width=8, least=0,
                ),
                Panel(
                    title="Age of values, p90",
                    reading="Of the oldest value of an answer. Between 1 and 2 s from exporters;"
                    " HPAs need no better than their window.",
                    queries=(
                        Query(
                            expr="histogram_quantile(0.9, sum by (group, le)"
                            " (rate(metrics_apiserver_metric_freshness_seconds_bucket"
                            f"{{{OF_CLUSTER}}}[$__rate_interval])))",
                            legend="{{group}}",
                        ),
                    ),
                    unit=units.SECONDS, least=0,
                ),
                Panel(
                    title="Objects without a value",
                    reading="Pods that were asked for and left out, by reason. The HPA takes missing"
                    " ones into account by its own cautious rules.",
                    queries=(
                        Query(
                            expr="sum by (reason)"
                            " (rate(slicewatch_adapter_dropped_values_total"
                            f"{{{OF_CLUSTER}}}[$__rate_interval]))",
                            legend="{{reason}}",
                        ),
                    ),
                    unit=units.PER_SECOND, least=0, empty="None was left out",
                ),
            ),
        ),
    ),
)  # fmt: skip
