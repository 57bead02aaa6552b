"""NVML of the machine, through NVIDIA's binding; no other package imports it.

Device handles are resolved anew in every cycle and never kept: a handle of a MIG device that is
gone may stand for another one. Values are passed on as they are; the catalog's limits reject what
cannot be. All that can be looked up once is, so that a cycle costs little more than the binding.

The library is loaded once in the life of a process: after the driver was replaced under it, the
version mismatch lasts until the process is restarted.
"""

from exporter.nvml.real.library import RealNvml as RealNvml
