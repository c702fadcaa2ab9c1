"""Arguments of an engine."""
