"""Kubernetes Events: what is told of a resource, when, and how often."""
