"""What our marks on a Node are called. Part of the documented contract; they never change."""

from typing import Final

PREFIX: Final = "health.slicewatch.dev/"

STATE: Final = f"{PREFIX}state"
"""Annotation: what the monitor has to know of after a restart; see ``health.record``."""

CORDONED: Final = f"{PREFIX}cordoned"
"""Annotation: the cordon is the monitor's, and for which fault; see ``health.ownership``."""

HOLD: Final = f"{PREFIX}hold"
"""Annotation of a human: ``true`` leaves the node as it is, schedulable or not."""

CLEAR: Final = f"{PREFIX}clear"
"""Annotation of a human: ``true`` or the id of a check: its faults are to be forgotten, once."""

TAINT: Final = f"{PREFIX}gpu-unhealthy"
"""Key of the taint that may come with the cordon."""
