"""Cached Pods: their servers, routes and GPUs, and errors that keep them from running."""
