"""Readings of every pool's metrics, every few seconds."""
