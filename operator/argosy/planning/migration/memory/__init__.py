"""A server's GPU memory while it changes: what is loaded, what has to be loaded, and what fits beside it."""
