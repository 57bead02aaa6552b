"""Advice from what users wrote and what their cluster says: pure, no I/O, no clock of its own."""
