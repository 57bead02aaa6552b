"""Rules and paths that several tests use, and what they have within reach."""

from dataclasses import dataclass

from adapter.sources.prometheus.rules import Rules
from testbed.front_proxy import ApiPort, Asker
from testbed.scripted_prometheus import ScriptedPrometheus

POD_RULE = """
- seriesQuery: 'DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!=""}'
  resources:
    overrides: {namespace: {resource: namespace}, pod: {resource: pod}}
  name: {as: dcgm_utilization}
  metricsQuery: 'avg(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)'
"""
QUEUE_RULE = """
- seriesQuery: 'Queue_Depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}}}
  metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>}) by (queue)'
"""
PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ml/pods"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ml"


@dataclass(frozen=True, kw_only=True)
class Served:
    """Everything of one test within reach."""

    port: ApiPort
    rules: Rules
    prometheus: ScriptedPrometheus
    ask: Asker

    @property
    def now(self):
        return self.port.wall()

    async def dcgm(self, query=""):
        return await self.ask.values(f"{PODS}/*/dcgm_utilization{query}")
