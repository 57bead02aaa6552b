"""A real one-node Kubernetes for tests, in its own namespaces, which leaves no trace.

Entry point: ``testbed.cluster.cluster.Cluster.start()``. Needs root on Linux; anything else it
finds, installs or builds, or raises ``Unavailable``. It must never touch a process, an interface
or a mount that it did not create.
"""
