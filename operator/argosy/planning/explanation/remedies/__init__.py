"""Remedies: the smallest changes by which a replica without a place would have one, each planned with."""
