"""Bounds of replicas, service level objectives, and targets of scaling."""
