"""The pages that people look at: what is sent to a browser, and how it is served."""
