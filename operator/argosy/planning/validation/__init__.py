"""Errors between resources, and the spec of each that is acted upon."""
