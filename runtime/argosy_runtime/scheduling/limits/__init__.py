"""Limits between models: the rate limiter's resources, and the requests of an ensemble's steps."""
