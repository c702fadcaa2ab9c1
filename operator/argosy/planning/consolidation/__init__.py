"""Consolidation: a fleet that runs is repacked, so that whole GPUs come free."""
