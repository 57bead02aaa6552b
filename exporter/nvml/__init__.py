"""The seam to the driver: one protocol, the real implementation and the simulated one."""
