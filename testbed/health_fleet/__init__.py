"""Fleets of nodes with their health monitors, over months: what those do and leave alone."""
