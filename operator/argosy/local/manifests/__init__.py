"""Manifests on this machine: read from files, checked together, and changed so that one machine can serve them."""
