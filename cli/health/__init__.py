"""``slicewatch health …``: what people ask of the monitors; the monitor itself is ``health.main``."""
