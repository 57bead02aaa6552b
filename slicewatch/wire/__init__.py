"""What the processes say to each other: who is there (Layout) and what it reads (Snapshot)."""
