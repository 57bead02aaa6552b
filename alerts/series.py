"""Which series rules may use beside those of the catalog, how scrapes are told apart, and labels."""

from typing import Final

# What kube-state-metrics must provide, by the metrics pages of its own documentation.
KUBE_STATE_METRICS: Final = frozenset({
    "kube_horizontalpodautoscaler_spec_max_replicas",
    "kube_horizontalpodautoscaler_spec_min_replicas",
    "kube_horizontalpodautoscaler_spec_target_metric",
    "kube_horizontalpodautoscaler_status_condition",
    "kube_horizontalpodautoscaler_status_current_replicas",
    "kube_horizontalpodautoscaler_status_desired_replicas",
    "kube_node_status_condition",
})  # fmt: skip
# What Prometheus makes of each scrape.
PROMETHEUS: Final = frozenset({"up"})

# The names of the scrape jobs, as the chart's monitors and the guide have them.
EXPORTER_JOB: Final = 'job="slicewatch-exporter"'
ADAPTER_JOB: Final = 'job="slicewatch-adapter"'
HEALTH_JOB: Final = 'job="slicewatch-health"'

# A Prometheus may hold several clusters; where there is no label ``cluster`` it is one.
PER_CLUSTER: Final = "cluster"
# Series of devices have the label themselves; to what processes say of themselves, and to ``up``,
# the scrape adds it.
PER_NODE: Final = "cluster, node"
PER_GPU: Final = "cluster, node, gpu, uuid"
PER_DEVICE: Final = "cluster, node, gpu, uuid, gpu_instance, compute_instance, profile"

# HPAs that scale on our metrics or on dcgm-exporter's names for them.
OUR_METRICS: Final = 'metric_name=~"gpu_.*|DCGM_FI_.*"'
