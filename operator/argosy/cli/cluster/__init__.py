"""Commands that work with a cluster: the operator's process, and the engine cache of a pool."""
