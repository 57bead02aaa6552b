"""Programs that say how busy they keep a GPU, and the driver that reports their true PIDs.

What is made up here ends at the driver's answers. The processes are the kernel's, and who they
belong to is for the product to find out: nothing in this package knows of a pod.
"""
