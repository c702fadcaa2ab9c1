"""What is measured of the machine that a server runs on, every few seconds and not by requests: its GPUs, its CPUs.

Each kind is a reader, called in a thread and one call at a time, that gives its metric families; `sampling.py` asks
them. A value that cannot be had is left out: it is never 0 for that.
"""
