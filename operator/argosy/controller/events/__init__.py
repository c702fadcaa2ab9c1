"""Kubernetes Events: which are posted of a resource, when, and how often."""
