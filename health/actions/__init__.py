"""What is written to a node and said about it; how, never whether."""
