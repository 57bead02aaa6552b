"""An NVIDIA driver that is not there: libnvidia-ml.so.1 in C, fed from a simulated node.

It has the true binary interface, compiled against NVIDIA's own header, so that the binding, the
exporter and any other program load it as they load the real one. It knows nothing by itself:
everything it answers stands in a file that another process, or a thread, keeps up to date.
"""
