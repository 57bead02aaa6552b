"""Real machinery for tests and benchmarks: a cluster, a driver, servers. Never shipped."""
