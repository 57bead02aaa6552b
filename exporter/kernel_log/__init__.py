"""The kernel's log as a second source of Xids: in words, and from before the exporter ran."""
