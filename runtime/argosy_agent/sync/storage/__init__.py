"""Calls of the models' storage, in threads that no round waits for: keys, and files."""
