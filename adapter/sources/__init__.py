"""Where readings come from: the exporters of the nodes, found and followed one by one."""
