"""A request on its way through the engine: its parameters, its prompt, its stream of deltas."""
