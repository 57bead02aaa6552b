"""What the exporter may learn from the API server, only where the settings ask for it.

Nothing here writes to Kubernetes, and nothing that reads GPUs or answers a scrape waits for it.
Without a setting that needs it, no Kubernetes client is imported.
"""

from exporter.cluster.connection import Cluster, following

__all__ = ["Cluster", "following"]
