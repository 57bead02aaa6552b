"""A real one-node Kubernetes for tests, in namespaces of its own, gone without a trace after.

Entry: ``testbed.cluster.cluster.Cluster.start()``. Needs root on Linux; what else it needs it
finds, installs or builds, or says ``Unavailable``. It must never touch a process, an interface
or a mount that it did not make.
"""
