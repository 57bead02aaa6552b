"""``slicewatch explain``: why an autoscaler does what it does, asked with the caller's own rights."""
