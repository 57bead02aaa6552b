"""Autoscalers that scale on GPUs, and the API that gives them their metrics."""

from typing import Final

from alerts.model import Alert, Group, Severity, Source
from alerts.series import ADAPTER_JOB, OUR_METRICS, PER_CLUSTER
from alerts.thresholds import CERTIFICATE_SECONDS, CONNECTED_RATIO, ERROR_RATIO

_ADAPTER: Final = frozenset({Source.ADAPTER})
_KUBERNETES: Final = frozenset({Source.KUBE_STATE_METRICS})
_FAILED: Final = '{code=~"5.."}'
_HPA: Final = "cluster, namespace, horizontalpodautoscaler"


_OURS: Final = f"and on ({_HPA}) kube_horizontalpodautoscaler_spec_target_metric{{{OUR_METRICS}}}"


def _requests(selector: str) -> str:
    return (
        f"sum by ({PER_CLUSTER})"
        f" (rate(slicewatch_adapter_request_duration_seconds_count{selector}[10m]))"
    )


GROUP: Final = Group(
    name="autoscaling",
    title="Autoscaling",
    intent="An HPA cannot see its metric or cannot add replicas, or the metrics API is in trouble.",
    rules=(
        Alert(
            name="GPUHPABlind",
            expr=f"""
            max by ({_HPA}) (
              kube_horizontalpodautoscaler_status_condition{{condition="ScalingActive",status="false"}}
            ) == 1
            {_OURS}
            """,
            hold="5m",
            severity=Severity.CRITICAL,
            summary="HPA {{ $labels.namespace }}/{{ $labels.horizontalpodautoscaler }} does not get"
            " its metric.",
            description="It keeps its replicas, whatever the load. `slicewatch explain hpa` and"
            " `kubectl describe hpa` say why.",
            sources=_KUBERNETES,
        ),
        Alert(
            name="GPUHPAAtMaximum",
            expr=f"""
            max by ({_HPA}) (kube_horizontalpodautoscaler_status_desired_replicas)
            >= max by ({_HPA}) (kube_horizontalpodautoscaler_spec_max_replicas)
            {_OURS}
            """,
            hold="30m",
            severity=Severity.WARNING,
            summary="HPA {{ $labels.namespace }}/{{ $labels.horizontalpodautoscaler }} has been at its"
            " maximum for half an hour.",
            description="It wants {{ $value }} replicas and may have no more. Raise maxReplicas, or"
            " find out why the load is that high.",
            sources=_KUBERNETES,
        ),
        Alert(
            name="SlicewatchAdapterAbsent",
            expr=f"absent(up{{{ADAPTER_JOB}}} == 1)",
            hold="5m",
            severity=Severity.CRITICAL,
            summary="No adapter answers: HPAs on GPU metrics are blind.",
            description="Prometheus reaches no target of the adapter's job. Every HPA on its metrics"
            " keeps the replicas that it has.",
            sources=frozenset({Source.PROMETHEUS}),
        ),
        Alert(
            name="SlicewatchAPIServiceUnavailable",
            expr=f"""
            max by ({PER_CLUSTER}, api, reason) (slicewatch_adapter_api_service_registered == 0)
            """,
            hold="5m",
            severity=Severity.CRITICAL,
            summary="APIService {{ $labels.api }} does not lead to the adapter.",
            description="The reason is {{ $labels.reason }}. HPAs on its metrics get errors, or"
            " another adapter's values.",
            sources=_ADAPTER,
        ),
        Alert(
            name="SlicewatchAdapterWithoutData",
            expr=f"""
            avg by ({PER_CLUSTER}) (slicewatch_adapter_exporter_connected) < {CONNECTED_RATIO}
            """,
            hold="10m",
            severity=Severity.WARNING,
            summary="The adapter hears only {{ $value | humanizePercentage }} of the exporters.",
            description="Pods on the other nodes have no metrics; HPAs scale on the rest. The"
            " adapter's log and slicewatch_adapter_stream_faults_total say why.",
            sources=_ADAPTER,
        ),
        Alert(
            name="SlicewatchAdapterErrors",
            expr=f"{_requests(_FAILED)} / {_requests('')} > {ERROR_RATIO}",
            hold="10m",
            severity=Severity.WARNING,
            summary="The metrics APIs answer {{ $value | humanizePercentage }} of requests with"
            " errors.",
            description="The adapter's log has each of them. Where values are too old, see what has"
            " become of the exporters.",
            sources=_ADAPTER,
        ),
        Alert(
            name="SlicewatchAdapterPodsUnknown",
            expr=f"max by ({PER_CLUSTER}) (slicewatch_adapter_pods_synced) == 0",
            hold="5m",
            severity=Severity.WARNING,
            summary="The adapter does not know the pods of the cluster.",
            description="Its list or watch at the API server fails. Values of pods are withheld"
            " once what it knows is too old.",
            sources=_ADAPTER,
        ),
        Alert(
            name="SlicewatchCertificateExpiring",
            expr=f"""
            min by ({PER_CLUSTER}, object) (slicewatch_adapter_certificate_expiry_timestamp_seconds)
            - time() < {CERTIFICATE_SECONDS}
            """,
            hold="1h",
            severity=Severity.WARNING,
            summary="A certificate of the metrics API ({{ $labels.object }}) ends soon.",
            description="It ends in {{ $value | humanizeDuration }}. Then the API server refuses the"
            " adapter, and HPAs are blind.",
            sources=_ADAPTER,
        ),
        Alert(
            name="SlicewatchRuleFailing",
            expr=f"max by ({PER_CLUSTER}, rule) (slicewatch_adapter_rule_success) == 0",
            hold="15m",
            severity=Severity.WARNING,
            summary="Rule {{ $labels.rule }} of the adapter brings no result.",
            description="HPAs on its metric are blind. `slicewatch lint` checks the file; the"
            " adapter's log has what the backend said.",
            sources=_ADAPTER,
        ),
    ),
)
