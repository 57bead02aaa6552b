"""A simulated fleet: GPUs, their users and their faults, described by a scenario.

Everything is a function of time, so that skipping days costs no more than skipping one. It also
keeps the truth, which no exporter sees, for tests to compare with. It reads no device and imports
nothing from the exporter: the NVML on top of it is in ``exporter.nvml.simulated``.
"""
