"""Judges the GPUs of its own node and takes the node out of service when one fails; reads no GPU."""
