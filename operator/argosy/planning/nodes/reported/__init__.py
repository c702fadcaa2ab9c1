"""Devices whose number on a node changes: those that come back, are lost, or are gone and still in use. Pure."""
