"""What each device costs by the shipped prices, worked out from profiles by hand."""

from tests.unit.exporter.mixed import each

WHOLE = {"A100-80GB": 3.5, "A100-40GB": None, "H100-80GB": 4.5, "H200": 6.0, "L40S": 1.5}
# Memory slices of eight.
SLICES = {"1g": 1, "2g": 2, "3g": 4, "4g": 4, "7g": 8}


def _price(_, place):
    whole = WHOLE.get(place.gpu.model.name)
    if whole is None or place.mig is None:
        return whole
    return whole * SLICES[place.mig.profile.name[:2]] / 8


FAMILIES = {"gpu_price_dollars_per_hour": each(_price)}
