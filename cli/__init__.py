"""The ``slicewatch`` command: one thin file per subcommand."""
