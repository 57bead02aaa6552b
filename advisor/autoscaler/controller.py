"""The controller's flags, and how far a metric may be off before it acts."""

from dataclasses import dataclass

from slicewatch.kube.autoscaling import HorizontalPodAutoscaler, ScalingRules
from slicewatch.kube.quantity import number


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Flags of kube-controller-manager, at their defaults.

    Attributes:
        tolerance: part of the target by which a metric may be off either way.
        downscale_stabilization_seconds: how long a higher recommendation keeps the replicas up.
        cpu_initialization_seconds: after its start a pod's CPU counts only once it is ready.
        initial_readiness_seconds: a pod that turned unready so soon has never been ready.
    """

    tolerance: float = 0.1
    downscale_stabilization_seconds: int = 300
    cpu_initialization_seconds: float = 300.0
    initial_readiness_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The ratios between which the replicas stay: 1 - ``down`` to 1 + ``up``."""

    down: float
    up: float

    def holds(self, ratio: float) -> bool:
        """Tell whether a ratio is too close to 1 to act."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def tolerance(autoscaler: HorizontalPodAutoscaler, controller: Controller) -> Tolerance:
    """Return the tolerance of an autoscaler: its own, or the controller's."""
    behavior = autoscaler.spec.behavior

    def own(rules: ScalingRules | None) -> float:
        if rules is None or rules.tolerance is None:
            return controller.tolerance
        return float(number(rules.tolerance))

    return Tolerance(
        down=own(behavior.scale_down if behavior else None),
        up=own(behavior.scale_up if behavior else None),
    )
