"""Pods as they are watched: their servers, routes, GPUs, and what keeps them from running."""
