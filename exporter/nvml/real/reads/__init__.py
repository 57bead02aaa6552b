"""Reads of the real driver: one file per domain, one function per probe."""
