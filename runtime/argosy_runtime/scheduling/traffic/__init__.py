"""Requests divided among the versions of a model, by weight and by keys."""
