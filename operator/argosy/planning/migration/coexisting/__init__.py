"""Revisions that a server has loaded together: whole ensembles, and versions with configurations of their own."""
