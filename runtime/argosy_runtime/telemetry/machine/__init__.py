"""Measurements of the machine that a server runs on, every few seconds: its GPUs and its CPUs.

Each kind has a reader, which returns its metric families. `sampling.py` calls them in a thread, one at a time. A value
that cannot be read is left out, and never 0.
"""
