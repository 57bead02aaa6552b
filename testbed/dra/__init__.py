"""A driver of dynamic resource allocation for devices that a test describes.

Its two halves are those of every such driver: what it tells the API server about its devices
(``objects``), and the process on the node that the kubelet asks to prepare a claim (``driver``).
"""
