"""The rules of prometheus-adapter, understood: from YAML to the PromQL text of a question.

Both who serves rules and who checks them need this, so it stands below both. Nothing here opens a
file, asks a backend or reads a clock.
"""
