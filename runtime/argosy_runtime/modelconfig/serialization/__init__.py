"""A configuration as `config.pbtxt` and as JSON, and the names of its fields."""
