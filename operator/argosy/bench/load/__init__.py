"""Sends the load and reads the clock: the only part of `argosy bench` that does I/O."""
