"""Argosy's parts, for tests that reach below Kubernetes or do without Pods.

What may live here: an operator that is a process of this machine, agents that a thread plays, and a Pod's processes,
to be killed.
"""
