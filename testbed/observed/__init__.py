"""What real Prometheus and Alertmanager are given to look at, and what becomes of it."""
