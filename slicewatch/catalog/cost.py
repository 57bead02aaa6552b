"""What a device costs. What it is worth, and who wastes it, recording rules say (``alerts/cost.py``)."""

from typing import Final

from slicewatch.catalog.model import Derived, Limits, Scope, Unit

PRICING: Final = Derived(name="price", reading=float, scopes=frozenset({Scope.GPU, Scope.MIG}))
# More than a rack of anything; a price per month would be rejected, for it is no price per hour.
DOLLARS_PER_HOUR: Final = Limits(low=0, high=1000)

PRICE: Final = PRICING.gauge(
    "gpu_price_dollars_per_hour",
    help="Price of an hour of the GPU by the setting prices; of a MIG device, its part of that.",
    unit=Unit.DOLLARS_PER_HOUR,
    limits=DOLLARS_PER_HOUR,
    value=float,
)

METRICS: Final = (PRICE,)
