"""What dcgm-exporter is to us: a source where NVML has no values, and a form of page users know."""
