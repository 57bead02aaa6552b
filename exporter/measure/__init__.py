"""From readings to snapshots. Pure, and takes ``now``; only ``Processes`` is asked on the way."""
