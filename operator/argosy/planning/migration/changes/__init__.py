"""The replacement of a model's old revision by a new one: loaded next to it, or after it."""
