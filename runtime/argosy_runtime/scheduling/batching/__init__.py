"""Which waiting requests share a batch, where a model has a rule of its own."""
