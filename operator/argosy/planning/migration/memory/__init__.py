"""A server's GPU memory while it changes: what is loaded, what is loaded in addition, what has to wait."""
