"""What the node's health monitor asks for: readings as NVML gave them, and what happened."""
