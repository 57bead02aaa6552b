"""Who holds which device: what the kubelet tells, put onto the devices that NVML shows."""
