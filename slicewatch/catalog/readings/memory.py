"""Device memory."""

import msgspec


class Memory(msgspec.Struct, frozen=True, gc=False):
    """Frame buffer of a GPU or a MIG instance (nvmlMemory_v2_t).

    ``used_bytes`` is what is allocated, excluding ``reserved_bytes``, which the driver keeps.
    """

    total_bytes: int
    free_bytes: int
    used_bytes: int
    reserved_bytes: int

    def consistent(self) -> bool:
        """Tell whether the parts fit into the whole."""
        parts = (self.free_bytes, self.used_bytes, self.reserved_bytes)
        if min(parts) < 0 or self.total_bytes <= 0 or self.reserved_bytes > self.total_bytes:
            return False
        return self.free_bytes + self.used_bytes <= self.total_bytes


class Bar1Memory(msgspec.Struct, frozen=True, gc=False):
    """The window through which the host and other devices reach device memory over PCIe.

    ``used_bytes`` is how much of it is mapped, not how much memory is allocated.
    """

    total_bytes: int
    free_bytes: int
    used_bytes: int

    def consistent(self) -> bool:
        """Tell whether the parts fit into the whole."""
        if min(self.free_bytes, self.used_bytes) < 0 or self.total_bytes <= 0:
            return False
        return self.free_bytes + self.used_bytes <= self.total_bytes
