"""The second process: joins what exporters read with pods, and serves the metrics APIs.

It measures nothing and writes nothing to Kubernetes.
"""
