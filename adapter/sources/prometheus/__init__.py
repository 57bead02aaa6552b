"""Rules of prometheus-adapter, answered by any Prometheus-compatible backend."""
