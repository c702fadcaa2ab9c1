"""Demand and nodes become a plan: which servers there are, and what sits on which GPU.

One solver, for the real run and for what-if.
"""
