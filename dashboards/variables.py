"""The choices above a dashboard, and the selectors that follow them.

``All`` is ``.*``, which fits series without the label too: where there is one cluster, nobody has
to call it something.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice among the values of a label, several at a time.

    Attributes:
        series: whose label it is; narrowed by the choices before it.
    """

    name: str
    title: str
    series: str
    single: bool = False


CLUSTER: Final = Variable(name="cluster", title="Cluster", series="gpu_up")
NODE: Final = Variable(name="node", title="Node", series='gpu_up{cluster=~"$cluster"}')
ONE_NODE: Final = Variable(
    name="node", title="Node", series='gpu_up{cluster=~"$cluster"}', single=True
)
MODEL: Final = Variable(
    name="model", title="Model", series='gpu_up{cluster=~"$cluster",node=~"$node"}'
)
UUID: Final = Variable(
    name="uuid", title="GPU", series='gpu_up{cluster=~"$cluster",node=~"$node"}', single=True
)
NAMESPACE: Final = Variable(
    name="namespace", title="Namespace", series='gpu_tenant_info{cluster=~"$cluster"}'
)
HPA_NAMESPACE: Final = Variable(
    name="namespace", title="Namespace",
    series='kube_horizontalpodautoscaler_spec_max_replicas{cluster=~"$cluster"}',
)  # fmt: skip

OF_CLUSTER: Final = 'cluster=~"$cluster"'
OF_NODE: Final = f'{OF_CLUSTER},node=~"$node"'
OF_GPU: Final = f'{OF_NODE},model=~"$model"'
OF_NAMESPACE: Final = f'{OF_CLUSTER},namespace=~"$namespace"'
OF_TENANT: Final = f'{OF_GPU},namespace=~"$namespace"'
