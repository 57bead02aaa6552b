"""What the benchmark runs in processes of their own: peers of ours, and stand-ins for a cluster."""
