"""Whose processes there are, as a test says it; implements ``Processes``."""

from exporter.tenants.owners import Fault


class People:
    """Attributes: ``owners`` by pid, which a test may change; ``servers``, the pids of MPS."""

    def __init__(self, owners, *, servers=(), fault=Fault.NONE):
        self.owners = dict(owners)
        self.servers = frozenset(servers)
        self.fault = fault
        self.version = 0

    def owner(self, pid):
        return None if self.fault else self.owners.get(pid)

    def is_mps_server(self, pid):
        return not self.fault and pid in self.servers

    def refresh(self):
        self.version += 1

    def close(self):
        pass
