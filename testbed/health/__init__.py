"""Machinery for tests of the health monitor on a real API server."""
