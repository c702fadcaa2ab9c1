"""Fleets to pack: what a fleet is, the seeded families, and the manifests and Nodes that the operator reads."""
