"""From readings to snapshots. Everything here is pure and takes ``now``."""
