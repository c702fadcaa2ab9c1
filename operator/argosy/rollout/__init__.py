"""Rollouts: whether the candidate of a model or an ensemble gets more traffic, all of it, or goes. Pure."""
