"""Reads the metrics of every pool every few seconds."""
