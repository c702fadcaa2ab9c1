"""Argosy's inference server: Triton's repository, Triton's protocol, scheduling of its own."""
