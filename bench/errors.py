"""The one error of the benchmark."""


class BenchError(Exception):
    """A figure could not be measured; the message says what happened, with the log that tells."""
