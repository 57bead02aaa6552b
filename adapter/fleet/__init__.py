"""The fleet page: pools, their nodes, their GPUs, for people with a browser."""
