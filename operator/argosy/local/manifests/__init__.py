"""Manifests on this machine: read from files, checked together, and what is acted upon while some are wrong."""
