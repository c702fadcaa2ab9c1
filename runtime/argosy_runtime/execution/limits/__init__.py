"""The rate limiter as the versions of models use it."""
