"""Every check, one file per family; ``health.checks.index`` lists them."""
