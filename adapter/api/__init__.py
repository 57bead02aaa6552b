"""The wire protocol of the metrics APIs: paths, selectors, quantities, bodies, errors, authentication."""
