"""The Kubernetes seam: a handful of typed objects, five verbs, and a cache kept by list and watch.

Imports none of the generated models of the Kubernetes client: they cost 188 MB.
"""
