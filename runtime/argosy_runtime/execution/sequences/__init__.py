"""Requests that depend on each other: what a dispatcher does in addition where they are sequences."""
