"""A fleet that is not there: GPUs, their users and their faults, from a scenario.

Everything is a function of time, so that days can be skipped at the cost of one. It also keeps
the truth, which no exporter sees, for tests to compare with. It reads no device and imports
nothing of the exporter: what looks like NVML over it stands in ``exporter.nvml.simulated``.
"""
