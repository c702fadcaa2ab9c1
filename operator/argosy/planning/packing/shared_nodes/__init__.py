"""Pools on the same nodes: what one gives up because something of another comes before it."""
