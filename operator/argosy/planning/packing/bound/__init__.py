"""Replicas that run already, put where they are before any other finds a place."""
