"""What a simulated driver answers: one file per domain, one function per probe."""
