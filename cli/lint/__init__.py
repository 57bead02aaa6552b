"""``slicewatch lint``: says what is wrong with rules and autoscalers before they run."""

from cli.lint.run import Options, run_lint

__all__ = ["Options", "run_lint"]
