"""Inference over HTTP: V2 JSON with the binary tensor extension."""
