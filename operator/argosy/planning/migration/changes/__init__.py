"""How a new revision of a model replaces the old one: loaded next to it, or after it."""
