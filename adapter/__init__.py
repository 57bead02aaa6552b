"""The second process: joins the exporters' readings with pods and serves the metrics APIs.

It measures nothing and writes nothing to Kubernetes.
"""
