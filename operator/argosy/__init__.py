"""Argosy's control plane: resources become a plan, and the plan becomes things."""
