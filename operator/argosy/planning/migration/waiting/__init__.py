"""Bindings that wait: for each other in a circle, or for bytes in ConfigMaps."""
