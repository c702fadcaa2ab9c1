"""Serves one model on this machine for `argosy profile`, as `argosy up` does, and measures it."""
