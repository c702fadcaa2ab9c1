"""Rollouts as planning sees them: what a revision of an ensemble is, and how a revision replaces another one."""
