"""The status page: what the exporter knows, for people with a browser."""
