"""The Kubernetes seam: a handful of typed objects, five verbs, and a cache fed by list and watch.

None of the Kubernetes client's generated models is imported: they cost 188 MB.
"""
