"""``python -m cli``: the same as ``slicewatch``, for a checkout that is not installed."""

from cli.main import main

main()
