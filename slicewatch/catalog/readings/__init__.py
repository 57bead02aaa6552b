"""What one NVML read returns, as plain data.

Units are part of the field names and are NVML's own: the catalog converts to what we publish, so
that a reading can be compared with ``nvidia-smi`` digit by digit. No reading carries a sentinel:
a value that NVML marks as not available is an ``Unsupported`` outcome, or ``None`` where the
field allows it.

They are structs because hundreds are created in every tick, and a frozen dataclass takes several
times as long to create; they never go over a wire.
"""
