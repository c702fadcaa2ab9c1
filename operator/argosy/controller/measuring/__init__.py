"""Pools are measured every few seconds: what of them, and by which logins."""
