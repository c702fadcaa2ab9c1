"""The free instances of a model version, and the rate limiter that grants them."""
