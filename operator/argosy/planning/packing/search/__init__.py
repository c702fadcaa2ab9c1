"""The search for a plan with few GPUs: one mutable state, greedy starts, and a large-neighbourhood search.

Servers are derived, not decided: a server is the GPUs of a node that models tie together.
"""
