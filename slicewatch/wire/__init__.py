"""What the processes exchange: which devices exist (Layout) and their values (Snapshot)."""
