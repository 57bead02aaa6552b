"""The whole chain on a test cluster: our processes on the node, an API registered, a load."""
