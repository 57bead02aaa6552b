"""Grafana dashboards, a Python file each; the JSON under ``json/`` is generated."""
