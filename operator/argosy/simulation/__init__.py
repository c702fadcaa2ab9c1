"""Simulation of scaling policies: a trace of arrivals is served by a fleet, by discrete events, with the operator's own
decision functions. Pure: traces are numbers, time is the trace's, and random draws are seeded.

Servers (`servers/`) batch and execute, an autoscaler (`autoscalers/`) sees the same values as a scrape, and the result
is a `SimulationOutcome`. The command line reads files and draws pictures.
"""
