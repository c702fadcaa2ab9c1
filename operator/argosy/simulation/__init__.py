"""What a policy would do: a trace of arrivals against a fleet, by discrete events, with the functions that the operator
decides by. Pure: traces come in as numbers, time is the trace's, and every random draw has its seed.

Servers (`servers/`) batch and execute, an autoscaler (`autoscalers/`) sees what a scrape would have shown it, and
what comes of it is an `Outcome`. Reading files and drawing pictures is the command line's.
"""
