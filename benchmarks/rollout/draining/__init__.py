"""Servers that end under load as Pods do, and what clients of their Service meet of it."""
