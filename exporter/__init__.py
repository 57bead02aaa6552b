"""Process 1, a DaemonSet: reads the GPUs of its node and publishes them; writes to nothing."""
