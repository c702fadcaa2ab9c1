"""Calls of running models to their server (business logic scripting), both ends."""
