"""Alerts for people on call, and recording rules, each declared once; the YAML is generated."""
