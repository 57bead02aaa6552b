"""Who may ask a server of ours, and how: the web configuration that exporters share."""
